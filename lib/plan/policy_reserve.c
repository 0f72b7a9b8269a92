#include "policy_reserve.h"

/*
 * Which of two cases is planned: memory and processes that ended leases have left stay, or they are
 * gone at once.  policy_reserve.h says why both are.
 */
enum remains { REMAINS_STAY, REMAINS_GO };

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
	struct room room = { .leases = 0 };

	/* the start has no bound, so no later ticket may count on what will be left */
	if (at_ms == INT64_MAX)
		return room;
	room = room_then(plan, slot, at_ms, REMAINS_STAY);
	room_take(&room, &plan->facts->gpus[slot], &row->need);
	return room;
}

static bool is_any_clearing(const struct plan *plan, struct gpuset of)
{
	gpuset_for_each (slot, &of)
		if (gpu_is_clearing(&plan->facts->gpus[slot]))
			return true;
	return false;
}

/* GPUs on which a row fits soonest, and when. */
struct soonest {
	struct gpuset gpus;
	int64_t start_ms; /* the latest time at which it fits on all; INT64_MAX: not known */
	int64_t when_ms[GPUSET_MAX]; /* by slot, of each */
};

/* Finds as many GPUs as @row needs: those free soonest, of equal ones the lowest slots. */
static void find_soonest(const struct plan *plan, const struct plan_row *row,
	struct gpuset candidates, enum remains remains, struct soonest *ret)
{
	int64_t *when_ms = ret->when_ms;

	ret->gpus = GPUSET_NONE;
	ret->start_ms = plan->facts->now_ms;
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
		gpuset_add(&ret->gpus, (unsigned)best);
		ret->start_ms = max_i64(ret->start_ms, when_ms[best]);
	}
}

/*
 * Reserves for the latest head the GPUs of @stay, and those of @go that are clearing.  (The others
 * of @go are in @stay: they become free at the same time in both cases.)  What is left beside the
 * head counts from the time on by which jobs that pass it will have ended.
 */
static void reserve_gpus(struct plan *plan, const struct plan_row *row,
	const struct soonest *stay, const struct soonest *go)
{
	struct plan_head *head = &plan->heads[plan->head_count - 1];

	head->reserved = stay->gpus;
	gpuset_for_each (slot, &go->gpus)
		if (gpu_is_clearing(&plan->facts->gpus[slot]))
			gpuset_add(&head->reserved, (unsigned)slot);
	plan->reserved = gpuset_or(&plan->reserved, &head->reserved);
	gpuset_for_each (slot, &head->reserved) {
		bool may_go = !gpuset_has(&stay->gpus, (unsigned)slot) ||
			      (gpuset_has(&go->gpus, (unsigned)slot) &&
				      gpu_is_clearing(&plan->facts->gpus[slot]));

		plan->head_of[slot] = (uint8_t)(plan->head_count - 1);
		plan->later[slot] = beside_head(plan, row, (unsigned)slot,
			may_go ? INT64_MAX
			       : max_i64(stay->when_ms[slot], head->backfill_ms));
	}
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
	struct soonest stay, go = { .gpus = GPUSET_NONE };

	*head = (struct plan_head){ .ticket = row->ticket,
		.uid = row->uid,
		.gpus = row->gpus,
		.need = row->need };
	reserve_quota(plan);
	/* once as if what ended leases have left stays, once as if it goes now */
	find_soonest(plan, row, candidates, REMAINS_STAY, &stay);
	go.start_ms = stay.start_ms;
	if (is_any_clearing(plan, candidates))
		find_soonest(plan, row, candidates, REMAINS_GO, &go);
	if (stay.start_ms != INT64_MAX) {
		head->start_ms = stay.start_ms;
		/* 0: the head may start at any moment, so no job may pass */
		head->backfill_ms = go.start_ms > plan->facts->now_ms ? go.start_ms : 0;
	}
	reserve_gpus(plan, row, &stay, &go);
	return head;
}
