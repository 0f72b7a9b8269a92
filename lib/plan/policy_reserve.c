#include "policy_reserve.h"

/*
 * Which of two cases is planned: memory and processes that ended leases have left stay, or they are
 * gone at once.  policy_reserve.h says why both are.
 */
enum remains { REMAINS_STAY, REMAINS_GO };

/*
 * Goes over the tickets that start on the GPU in this plan.  They form a list through ->next, which
 * ends at the index one past the array.
 */
#define for_each_start(start, plan, slot)                                                \
	for (const struct plan_start *start = &(plan)->starts[(plan)->last_start[slot]]; \
		start != &(plan)->starts[PLAN_NO_START];                                 \
		start = &(plan)->starts[start->next])

/*
 * Returns the room on a GPU at that time, beside the leases and the tickets that start in this
 * plan.
 */
static struct room room_then(
	const struct plan *plan, unsigned slot, int64_t at_ms, enum remains remains)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	struct room room =
		remains == REMAINS_GO ? room_cleared_at(gpu, at_ms) : room_at(gpu, at_ms);

	for_each_start(start, plan, slot)
	{
		room_take_use(&room, gpu, &start->use, at_ms);
	}
	return room;
}

/* Returns the next time after @at_ms at which a lease on the GPU must end; INT64_MAX: none. */
static int64_t next_end_ms(const struct plan *plan, unsigned slot, int64_t at_ms)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	int64_t next_ms = INT64_MAX;

	for (unsigned i = 0; i < gpu->use_count; i++)
		if (gpu->uses[i].end_ms > at_ms)
			next_ms = min_i64(next_ms, gpu->uses[i].end_ms);
	for_each_start(start, plan, slot)
	{
		if (start->use.end_ms > at_ms)
			next_ms = min_i64(next_ms, start->use.end_ms);
	}
	return next_ms;
}

/* Returns the latest time at which @row fits on the GPU; INT64_MAX: not known. */
static int64_t fits_ms(const struct plan *plan, const struct plan_row *row, unsigned slot,
	enum remains remains)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	int64_t now_ms = plan->facts->now_ms, at_ms = now_ms;

	/* no time limit ends processes that a lease has left, or memory that is not free yet */
	if (remains == REMAINS_STAY && (gpu->state == GPU_SETTLING || gpu->settling_mib ||
					       gpu->state == GPU_LINGERING))
		return INT64_MAX;
	/* go from one end of a lease to the next until the room is enough */
	while (at_ms != INT64_MAX) {
		struct room room = room_then(plan, slot, at_ms, remains);

		if (room_fits(&room, gpu, &row->need, plan->facts->margin_mib))
			return at_ms;
		at_ms = next_end_ms(plan, slot, at_ms);
	}
	return at_ms;
}

/*
 * Returns the room that head @row leaves on the GPU when it starts at @at_ms; none if that is
 * INT64_MAX.
 */
static struct room beside_head(
	const struct plan *plan, const struct plan_row *row, unsigned slot, int64_t at_ms)
{
	uint64_t margin_mib = plan->facts->margin_mib;
	struct room room = { .leases = 0 };

	/* the start has no bound, so no later ticket may count on what will be left */
	if (at_ms == INT64_MAX)
		return room;
	room = room_then(plan, slot, at_ms, REMAINS_STAY);
	room_take(&room, &plan->facts->gpus[slot], &row->need);
	/* keep the head's margin: room_fits() asks none of a share, which could take it */
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

/* Reserves one GPU for the latest head, and works out what that leaves of it at @at_ms. */
static void reserve_gpu(
	struct plan *plan, const struct plan_row *row, unsigned slot, int64_t at_ms)
{
	gpuset_add(&plan->reserved, slot);
	gpuset_add(&plan->heads[plan->head_count - 1].reserved, slot);
	plan->head_of[slot] = (uint8_t)(plan->head_count - 1);
	plan->later[slot] = beside_head(plan, row, slot, at_ms);
}

/*
 * Reserves for the latest head the GPUs that are free soonest, of equal ones the lowest slots.
 * Returns the latest time at which the head can start on them; INT64_MAX: not known.
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
			break; /* not reached: plan_refuse() passes enough of them */
		gpuset_for_each (slot, &candidates)
			if (when_ms[slot] < when_ms[best])
				best = slot;
		gpuset_remove(&candidates, (unsigned)best);
		start_ms = max_i64(start_ms, when_ms[best]);
		/*
		 * The second round adds only GPUs that are clearing.  The others become free at the
		 * same time in both rounds, so the first round has reserved them already.
		 */
		if (remains == REMAINS_GO && !gpu_is_clearing(&plan->facts->gpus[best]))
			continue;
		reserve_gpu(plan, row, (unsigned)best,
			remains == REMAINS_STAY ? when_ms[best] : INT64_MAX);
	}
	return start_ms;
}

bool policy_ends_before(
	const struct plan *plan, const struct plan_row *row, int64_t bound_ms)
{
	return bound_ms && row->limit_ms &&
	       plan->facts->now_ms + row->limit_ms + row->grace_ms + BACKFILL_MARGIN_MS <=
		       bound_ms;
}

/*
 * Sets ->later_quota: all heads, and all jobs that run or start before the last head.  Leases that
 * will have ended when a head starts count, too, because the plan does not know their users.
 */
static void reserve_quota(struct plan *plan)
{
	quota_copy(&plan->later_quota, &plan->quota);
	for (unsigned i = 0; i < plan->head_count; i++)
		quota_count(&plan->later_quota, plan->heads[i].uid, plan->heads[i].gpus,
			&plan->heads[i].need);
}

const struct plan_head *policy_reserve(
	struct plan *plan, const struct plan_row *row, struct gpuset candidates)
{
	struct plan_head *head = &plan->heads[plan->head_count++];
	int64_t stay_ms, go_ms;

	*head = (struct plan_head){ .ticket = row->ticket,
		.uid = row->uid,
		.gpus = row->gpus,
		.need = row->need };
	reserve_quota(plan);
	/* once as if what ended leases have left stays, once as if it goes now */
	go_ms = stay_ms = reserve_gpus(plan, row, candidates, REMAINS_STAY);
	if (is_any_clearing(plan, candidates))
		go_ms = reserve_gpus(plan, row, candidates, REMAINS_GO);
	if (stay_ms != INT64_MAX) {
		head->start_ms = stay_ms;
		/* 0: the head may start at any moment, so no job may pass */
		head->backfill_ms = go_ms > plan->facts->now_ms ? go_ms : 0;
	}
	plan->backfill_ms = plan->head_count == 1
				    ? head->backfill_ms
				    : min_i64(plan->backfill_ms, head->backfill_ms);
	return head;
}
