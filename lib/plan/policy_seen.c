#include "policy_seen.h"
#include "queue_order.h"

static bool sees_early(const struct plan_row *row, const struct plan_early *early)
{
	return early->since_ms < row->place.since_ms ||
	       !queue_comes_before(row->place, early->place);
}

/* Whether @row sees the lease. */
static bool sees(
	const struct plan *plan, const struct plan_row *row, const struct plan_use *use)
{
	return !use->early || sees_early(row, &plan->facts->early[use->early - 1]);
}

/* Notes GPU @slot in @seen, if a lease on it is not seen. */
static void see_gpu(const struct plan *plan, const struct plan_row *row, unsigned slot,
	struct policy_seen *seen)
{
	struct plan_gpu gpu = plan->facts->gpus[slot];
	const struct plan_use *uses = gpu.uses;
	unsigned count = gpu.use_count, left = 0;
	struct room *now = &seen->now[slot];

	gpu.use_count = 0;
	*now = room_at(&gpu, INT64_MIN);
	for (unsigned i = 0; i < count; i++)
		if (sees(plan, row, &uses[i])) {
			room_take_use(now, &gpu, &uses[i], INT64_MIN);
			left++;
		}
	if (left == count) {
		*now = plan->now[slot];
		return;
	}
	for_each_start(start, plan, slot)
	{
		room_take_use(now, &gpu, &start->use, INT64_MIN);
	}
	if (!left)
		gpu.state = gpu_state_without_leases(&gpu);
	gpuset_add(&seen->changed, slot);
	if (gpu_admits(&gpu, &NEED_WHOLE, true) && now->leases == ROOM_LEASES)
		gpuset_add(&seen->free, slot);
	if (gpu_admits(&gpu, &row->need, true) &&
		room_fits(now, &gpu, &row->need, plan->facts->margin_mib))
		gpuset_add(&seen->room, slot);
}

bool policy_see(
	const struct plan *plan, const struct plan_row *row, struct policy_seen *ret)
{
	if (!plan->facts->early_count)
		return false;
	ret->changed = ret->room = GPUSET_NONE;
	ret->free = plan->free;
	gpuset_for_each (slot, &plan->present)
		see_gpu(plan, row, (unsigned)slot, ret);
	return !gpuset_is_empty(&ret->changed);
}

struct gpuset policy_strange(const struct plan *plan, const struct plan_row *row)
{
	struct gpuset out = GPUSET_NONE;

	if (!plan->facts->early_count || !need_is_whole(&row->need))
		return out;
	gpuset_for_each (slot, &plan->present) {
		const struct plan_gpu *gpu = &plan->facts->gpus[slot];
		bool sees_any = !gpu->use_count || !gpu->foreign_mib;

		for (unsigned i = 0; i < gpu->use_count && !sees_any; i++)
			sees_any = sees(plan, row, &gpu->uses[i]);
		if (!sees_any)
			gpuset_add(&out, (unsigned)slot);
	}
	return out;
}

struct quota_part policy_unseen(const struct plan *plan, const struct plan_row *row)
{
	struct quota_part unseen = { 0 };

	for (size_t i = 0; i < plan->facts->early_count; i++) {
		const struct plan_early *early = &plan->facts->early[i];
		bool is_own = early->uid == row->uid;

		if (sees_early(row, early))
			continue;
		unseen.all_percent += early->percent;
		unseen.all_leases++;
		unseen.percent += is_own ? early->percent : 0;
		unseen.leases += is_own;
	}
	return unseen;
}
