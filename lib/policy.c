#include "policy.h"

/* A backfilled job is to be gone this long before the head could start. */
enum { BACKFILL_MARGIN_MS = 5000 };

/* A state that ends with a lease, of itself; the others need somebody or something else. */
static bool is_lease_state(enum gpu_state state)
{
	return state == GPU_FREE || state == GPU_LEASED || state == GPU_LINGERING ||
	       state == GPU_SETTLING;
}

bool gpu_state_is_silent(enum gpu_state state)
{
	return state == GPU_LINGERING || state == GPU_SETTLING || state == GPU_LOCKED ||
	       state == GPU_EXTERNAL || state == GPU_UNKNOWN;
}

void plan_begin(struct plan *plan, const struct plan_gpu *gpus, int64_t now_ms)
{
	*plan = (struct plan){ .gpus = gpus, .now_ms = now_ms };
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++) {
		if (!gpus[slot].exists)
			continue;
		gpuset_add(&plan->present, slot);
		if (is_lease_state(gpus[slot].state))
			gpuset_add(&plan->usable, slot);
		if (gpus[slot].state == GPU_FREE)
			gpuset_add(&plan->free, slot);
	}
}

/* --- choosing ---------------------------------------------------------------------- */

/* Whether slot @a is to be taken before slot @b. */
static bool comes_first(const struct plan *plan, int a, int b)
{
	const struct plan_gpu *x = &plan->gpus[a], *y = &plan->gpus[b];

	if (x->is_just_released != y->is_just_released)
		return y->is_just_released;
	if (x->index != y->index)
		return x->index < y->index;
	return a < b;
}

/* Whether slot @a is to be free no later than slot @b, of those that wait for leases. */
static bool frees_first(const struct plan *plan, int a, int b)
{
	bool a_free = gpuset_has(&plan->free, (unsigned)a);
	bool b_free = gpuset_has(&plan->free, (unsigned)b);
	int64_t x = plan->gpus[a].end_ms, y = plan->gpus[b].end_ms;

	if (a_free != b_free)
		return a_free;
	if (!a_free && x != y)
		return x && (!y || x < y);
	return a < b;
}

/* The @count slots of @from that come first by @before; @from has at least so many. */
static struct gpuset pick(const struct plan *plan, struct gpuset from, unsigned count,
	bool (*before)(const struct plan *, int, int))
{
	struct gpuset out = GPUSET_NONE;

	while (count--) {
		int best = -1;

		gpuset_for_each (slot, &from)
			if (best < 0 || before(plan, slot, best))
				best = slot;
		gpuset_add(&out, (unsigned)best);
		gpuset_remove(&from, (unsigned)best);
	}
	return out;
}

/* --- the head ---------------------------------------------------------------------- */

static void reserve(
	struct plan *plan, const struct plan_row *row, struct gpuset candidates)
{
	plan->head = row->ticket;
	plan->reserved = pick(plan, candidates, row->gpus, frees_first);
	plan->head_start_ms = plan->now_ms;
	gpuset_for_each (slot, &plan->reserved) {
		int64_t end_ms = plan->gpus[slot].end_ms;

		if (gpuset_has(&plan->free, (unsigned)slot))
			continue;
		/* taken by a ticket ahead in this plan, or leased without limit: no bound */
		if (!end_ms || plan->gpus[slot].state != GPU_LEASED)
			plan->head_start_ms = 0;
		if (plan->head_start_ms)
			plan->head_start_ms = max_i64(plan->head_start_ms, end_ms);
	}
}

/* Whether @row is certain to have ended before the head could start. */
static bool may_backfill(const struct plan *plan, const struct plan_row *row)
{
	return plan->head_start_ms && row->limit_ms &&
	       plan->now_ms + row->limit_ms + row->grace_ms + BACKFILL_MARGIN_MS <=
		       plan->head_start_ms;
}

/* --- rows -------------------------------------------------------------------------- */

/*
 * Names the strongest state that keeps a GPU of @from from being free, and the first GPU
 * that has it; a live lease needs no naming.
 */
static void blame(const struct plan *plan, struct gpuset from, struct verdict *verdict)
{
	gpuset_for_each (slot, &from) {
		enum gpu_state state = plan->gpus[slot].state;

		if (state > verdict->state && state != GPU_LEASED) {
			verdict->state = state;
			verdict->slot = (uint32_t)slot;
		}
	}
}

struct verdict plan_next(struct plan *plan, const struct plan_row *row)
{
	struct gpuset candidates = gpuset_and(&plan->usable, &row->allow);
	struct gpuset own_free = gpuset_and(&plan->free, &row->allow);
	struct gpuset offered = own_free;
	struct verdict out = { .wanted = row->gpus, .free = gpuset_count(&own_free) };

	if (!may_backfill(plan, row))
		offered = gpuset_minus(&offered, &plan->reserved);
	if (gpuset_count(&offered) >= row->gpus) {
		out.kind = VERDICT_START;
		out.gpus = pick(plan, offered, row->gpus, comes_first);
		plan->free = gpuset_minus(&plan->free, &out.gpus);
		return out;
	}
	if (!plan->first_blocked)
		plan->first_blocked = row->ticket;
	if (gpuset_count(&candidates) < row->gpus) {
		out.kind = VERDICT_GPU;
		blame(plan, gpuset_and(&plan->present, &row->allow), &out);
		return out;
	}
	if (plan->head) {
		out.kind = VERDICT_BEHIND;
		out.behind = plan->head;
		return out;
	}
	out.kind = VERDICT_LEASED;
	blame(plan, candidates, &out);
	reserve(plan, row, candidates);
	return out;
}

bool plan_is_closed(const struct plan *plan)
{
	struct gpuset open = plan->free;

	if (!plan->first_blocked)
		return false;
	/* without a bound for the head nobody is let past it */
	if (plan->head && !plan->head_start_ms)
		open = gpuset_minus(&open, &plan->reserved);
	return gpuset_is_empty(&open);
}

struct verdict plan_alone(
	const struct plan_gpu *gpus, int64_t now_ms, const struct plan_row *row)
{
	struct plan plan;

	plan_begin(&plan, gpus, now_ms);
	return plan_next(&plan, row);
}
