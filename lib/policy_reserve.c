#include "policy_reserve.h"

/* What becomes of what is left of those who have ended. */
enum remains { REMAINS_STAY, REMAINS_GO };

/* The room on a GPU at that time, beside the leases and those who start in this plan. */
static struct room room_then(
	const struct plan *plan, unsigned slot, int64_t at_ms, enum remains remains)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	struct room room =
		remains == REMAINS_GO ? room_cleared_at(gpu, at_ms) : room_at(gpu, at_ms);

	for (unsigned i = 0; i < plan->start_count; i++)
		if (plan->starts[i].slot == slot)
			room_take_use(&room, gpu, &plan->starts[i].use, at_ms);
	return room;
}

/* The next moment behind @at_ms at which somebody on the GPU has to end; INT64_MAX: none. */
static int64_t next_end_ms(const struct plan *plan, unsigned slot, int64_t at_ms)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	int64_t next_ms = INT64_MAX;

	for (unsigned i = 0; i < gpu->use_count; i++)
		if (gpu->uses[i].end_ms > at_ms)
			next_ms = min_i64(next_ms, gpu->uses[i].end_ms);
	for (unsigned i = 0; i < plan->start_count; i++)
		if (plan->starts[i].slot == slot && plan->starts[i].use.end_ms > at_ms)
			next_ms = min_i64(next_ms, plan->starts[i].use.end_ms);
	return next_ms;
}

/* When @row fits on the GPU at the latest; INT64_MAX: nobody knows. */
static int64_t fits_ms(const struct plan *plan, const struct plan_row *row, unsigned slot,
	enum remains remains)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	int64_t now_ms = plan->facts->now_ms, at_ms = now_ms;

	/* somebody behind a lease, or memory that is still held: no limit ends that */
	if (remains == REMAINS_STAY && (gpu->state == GPU_SETTLING || gpu->settling_mib ||
					       gpu->state == GPU_LINGERING))
		return INT64_MAX;
	while (at_ms != INT64_MAX) {
		struct room room = room_then(plan, slot, at_ms, remains);

		if (room_fits(&room, gpu, &row->need, plan->facts->margin_mib))
			return at_ms;
		at_ms = next_end_ms(plan, slot, at_ms);
	}
	return at_ms;
}

/* What the head leaves of the GPU to those who stay; nothing where its start has no bound. */
static struct room beside_head(
	const struct plan *plan, const struct plan_row *row, unsigned slot, int64_t at_ms)
{
	uint64_t margin_mib = plan->facts->margin_mib;
	struct room room = { .leases = 0 };

	if (at_ms == INT64_MAX) /* nobody knows */
		return room;
	room = room_then(plan, slot, at_ms, REMAINS_STAY);
	room_take(&room, &plan->facts->gpus[slot], &row->need);
	/* a share beside it has no margin of its own to leave */
	if (row->need.mib)
		room.mib -= room.mib < margin_mib ? room.mib : margin_mib;
	return room;
}

static bool is_any_clearing(const struct plan *plan, struct gpuset of)
{
	gpuset_for_each (slot, &of)
		if (gpu_is_clearing(&plan->facts->gpus[slot]))
			return true;
	return false;
}

/*
 * Takes the GPUs soonest to be free for the head, then the lowest slots.  Returns when it could
 * start on them at the latest; INT64_MAX: nobody knows.
 */
static int64_t reserve_gpus(struct plan *plan, const struct plan_row *row,
	struct gpuset candidates, enum remains remains)
{
	int64_t when_ms[GPUSET_MAX], start_ms = plan->facts->now_ms;

	gpuset_for_each (slot, &candidates)
		when_ms[slot] = fits_ms(plan, row, (unsigned)slot, remains);
	for (unsigned left = row->gpus; left > 0; left--) {
		int best = gpuset_next(&candidates, 0);

		if (best < 0)
			break; /* there are enough: see refuse() */
		gpuset_for_each (slot, &candidates)
			if (when_ms[slot] < when_ms[best])
				best = slot;
		gpuset_remove(&candidates, (unsigned)best);
		start_ms = max_i64(start_ms, when_ms[best]);
		/* the others were already, for none of them is soonest that was not before */
		if (remains == REMAINS_GO && !gpu_is_clearing(&plan->facts->gpus[best]))
			continue;
		gpuset_add(&plan->reserved, (unsigned)best);
		plan->later[best] = beside_head(plan, row, (unsigned)best,
			remains == REMAINS_STAY ? when_ms[best] : INT64_MAX);
	}
	return start_ms;
}

void policy_reserve(
	struct plan *plan, const struct plan_row *row, struct gpuset candidates)
{
	int64_t stay_ms, go_ms;

	plan->head = row->ticket;
	plan->head_gpus = row->gpus;
	plan->head_need = row->need;
	/* which leases have ended by then is not looked at: whose they are is not known here */
	quota_copy(&plan->later_quota, &plan->quota);
	quota_count(&plan->later_quota, row->uid, row->gpus, &row->need);
	go_ms = stay_ms = reserve_gpus(plan, row, candidates, REMAINS_STAY);
	if (is_any_clearing(plan, candidates))
		go_ms = reserve_gpus(plan, row, candidates, REMAINS_GO);
	if (stay_ms == INT64_MAX)
		return;
	plan->head_start_ms = stay_ms;
	plan->backfill_ms = go_ms > plan->facts->now_ms ? go_ms : 0;
}
