#include "policy.h"
#include "policy_reserve.h"

/* A backfilled job is to be gone this long before the head could start. */
enum { BACKFILL_MARGIN_MS = 5000 };

bool gpu_state_is_silent(enum gpu_state state)
{
	return state == GPU_LINGERING || state == GPU_SETTLING || state == GPU_LOCKED ||
	       state == GPU_EXTERNAL || state == GPU_UNKNOWN;
}

/* --- what there is ----------------------------------------------------------------- */

/* Whether a job of that kind could start on the GPU with that room. */
static bool would_fit(
	const struct plan *plan, unsigned slot, const struct room *room, struct need need)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];

	return gpu_admits(gpu, &need, true) &&
	       room_fits(room, gpu, &need, plan->facts->margin_mib);
}

/* Whether any job could: one that wants all of it, or the least that can be asked for. */
static bool is_open(const struct plan *plan, unsigned slot, const struct room *room)
{
	return would_fit(plan, slot, room, NEED_WHOLE) ||
	       would_fit(plan, slot, room, (struct need){ .percent = 1 }) ||
	       would_fit(plan, slot, room, (struct need){ .mib = 1 });
}

static void begin_gpu(struct plan *plan, unsigned slot)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	struct need whole = NEED_WHOLE;

	gpuset_add(&plan->present, slot);
	if (gpu->is_instance)
		gpuset_add(&plan->instances, slot);
	plan->now[slot] = room_at(gpu, INT64_MIN);
	if (gpu_admits(gpu, &whole, false))
		gpuset_add(&plan->usable, slot);
	if (gpu_admits(gpu, &whole, true) && plan->now[slot].leases == ROOM_LEASES)
		gpuset_add(&plan->free, slot);
	if (is_open(plan, slot, &plan->now[slot]))
		gpuset_add(&plan->open, slot);
}

void plan_begin(struct plan *plan, const struct plan_facts *facts)
{
	/* not the arrays: most of them nobody looks at */
	plan->facts = facts;
	plan->present = plan->usable = plan->free = GPUSET_NONE;
	plan->open = plan->reserved = plan->instances = GPUSET_NONE;
	plan->head = plan->first_blocked = 0;
	plan->head_start_ms = plan->backfill_ms = 0;
	plan->start_count = 0;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		if (facts->gpus[slot].exists)
			begin_gpu(plan, slot);
	quota_begin(&plan->quota, &facts->limits, facts->users, facts->user_count);
}

/* --- where a row fits -------------------------------------------------------------- */

/* What of @set the job may have: CUDA shows a process one MIG instance at a time. */
static struct gpuset may_have(
	const struct plan *plan, const struct plan_row *row, const struct gpuset *set)
{
	struct gpuset out = gpuset_and(set, &row->allow);

	return row->gpus > 1 ? gpuset_minus(&out, &plan->instances) : out;
}

/* Where it would fit had all leases ended; looks for no more than @most of them. */
static struct gpuset find_candidates(
	const struct plan *plan, const struct plan_row *row, unsigned most)
{
	struct gpuset from = may_have(plan, row, &plan->present), out = GPUSET_NONE;

	if (need_is_whole(&row->need))
		return may_have(plan, row, &plan->usable);
	gpuset_for_each (slot, &from) {
		const struct plan_gpu *gpu = &plan->facts->gpus[slot];
		struct room all = room_at(gpu, INT64_MAX);

		if (!most)
			break;
		if (!gpu_admits(gpu, &row->need, false) ||
			!room_fits(&all, gpu, &row->need, plan->facts->margin_mib))
			continue;
		gpuset_add(&out, (unsigned)slot);
		most--;
	}
	return out;
}

/* Where it fits now, whoever comes first. */
static struct gpuset find_room(const struct plan *plan, const struct plan_row *row)
{
	struct gpuset out = may_have(plan, row, &plan->open);

	if (need_is_whole(&row->need))
		return may_have(plan, row, &plan->free);
	gpuset_for_each (slot, &out) {
		const struct plan_gpu *gpu = &plan->facts->gpus[slot];

		if (!gpu_admits(gpu, &row->need, true) ||
			!room_fits(&plan->now[slot], gpu, &row->need,
				plan->facts->margin_mib))
			gpuset_remove(&out, (unsigned)slot);
	}
	return out;
}

/* --- past the head -------------------------------------------------------------------- */

/* Whether @row is certain to have ended before the head could start. */
static bool may_backfill(const struct plan *plan, const struct plan_row *row)
{
	return plan->backfill_ms && row->limit_ms &&
	       plan->facts->now_ms + row->limit_ms + row->grace_ms + BACKFILL_MARGIN_MS <=
		       plan->backfill_ms;
}

/* Leaves of @room what the head does not need, or can do without as long as @row runs. */
static struct gpuset spare_head(
	const struct plan *plan, const struct plan_row *row, struct gpuset room)
{
	struct gpuset asked = gpuset_and(&room, &plan->reserved);

	if (may_backfill(plan, row))
		return room;
	gpuset_for_each (slot, &asked)
		if (!room_fits(&plan->later[slot], &plan->facts->gpus[slot], &row->need,
			    plan->facts->margin_mib))
			gpuset_remove(&room, (unsigned)slot);
	return room;
}

/* Whether the limits that bind @row allow it and, unless it will have ended, the head as well. */
static bool leaves_quota(const struct plan *plan, const struct plan_row *row)
{
	struct quota_excess excess;

	return !plan->head || may_backfill(plan, row) ||
	       !quota_forbids(
		       &plan->later_quota, row->uid, row->gpus, &row->need, &excess);
}

/* --- verdicts ---------------------------------------------------------------------- */

static void take(struct plan *plan, const struct plan_row *row, unsigned slot)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	struct room *now = &plan->now[slot];

	room_take(now, gpu, &row->need);
	plan->starts[plan->start_count++] = (struct plan_start){ slot,
		{ .percent = row->need.percent,
			.mib = need_mib(&row->need, gpu->total_mib),
			.end_ms = row->limit_ms ? plan->facts->now_ms + row->limit_ms +
							  row->grace_ms
						: 0 } };
	if (gpuset_has(&plan->reserved, slot) && !may_backfill(plan, row))
		room_take(&plan->later[slot], gpu, &row->need);
	gpuset_remove(&plan->free, slot);
	if (!is_open(plan, slot, now))
		gpuset_remove(&plan->open, slot);
}

static void start(struct plan *plan, const struct plan_row *row, struct gpuset offered,
	struct verdict *verdict)
{
	struct choice choice = {
		.gpus = plan->facts->gpus,
		.room = plan->now,
		.links = plan->facts->links,
		.from = offered,
		.free = plan->free,
		.count = row->gpus,
		.need = row->need,
		.prefer = &row->prefer,
	};

	verdict->kind = VERDICT_START;
	if (row->gpus)
		verdict->gpus = choose(&choice);
	gpuset_for_each (slot, &verdict->gpus)
		take(plan, row, (unsigned)slot);
	quota_count(&plan->quota, row->uid, row->gpus, &row->need);
	if (plan->head && !may_backfill(plan, row))
		quota_count(&plan->later_quota, row->uid, row->gpus, &row->need);
}

/*
 * What keeps @row from the GPU.  Who needs a part of one may lack just the memory that somebody
 * outside holds beside leases; or had, and may take again, where nobody uses the GPU now; or
 * what a lease has left that has just ended.
 */
static enum gpu_state obstacle(
	const struct plan *plan, const struct plan_row *row, unsigned slot)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];

	if (!(gpu->foreign_mib || gpu->settling_mib) || gpu->state > GPU_LINGERING ||
		need_is_whole(&row->need) ||
		would_fit(plan, slot, &plan->now[slot], row->need))
		return gpu->state;
	return gpu->foreign_mib ? GPU_EXTERNAL : GPU_SETTLING;
}

/*
 * Names the strongest state that keeps a GPU of @from from being free, and the first GPU
 * that has it; a live lease needs no naming.
 */
static void blame(const struct plan *plan, const struct plan_row *row, struct gpuset from,
	struct verdict *verdict)
{
	gpuset_for_each (slot, &from) {
		enum gpu_state state = obstacle(plan, row, (unsigned)slot);

		if (state > verdict->state && state != GPU_LEASED) {
			verdict->state = state;
			verdict->slot = (uint32_t)slot;
		}
	}
}

/* The most room on any of them, for who needs a part of one; memory only with the share. */
static void find_best(
	const struct plan *plan, struct gpuset from, struct verdict *verdict)
{
	gpuset_for_each (slot, &from) {
		const struct room *room = &plan->now[slot];

		if (!gpu_admits(&plan->facts->gpus[slot], &verdict->need, true))
			continue;
		if (!room->leases && room->percent)
			verdict->slot = (uint32_t)slot; /* 31 leases, but room */
		if (room->percent > verdict->best.percent)
			verdict->best.percent = room->percent;
		if (room->mib > verdict->best.mib &&
			room->percent >= verdict->need.percent)
			verdict->best.mib = room->mib;
		if (room->leases > verdict->best.leases)
			verdict->best.leases = room->leases;
	}
}

/* What keeps @row waiting, which has not found enough room, or must not have it. */
static void refuse(struct plan *plan, const struct plan_row *row, struct verdict *verdict)
{
	/* behind a head it only matters whether there are enough */
	struct gpuset candidates =
		find_candidates(plan, row, plan->head ? row->gpus : GPUSET_MAX);
	struct gpuset asked = gpuset_and(&plan->present, &row->allow);
	bool is_short = gpuset_count(&candidates) < row->gpus;

	if (!plan->first_blocked)
		plan->first_blocked = row->ticket;
	if (!need_is_whole(&row->need) && (is_short || !plan->head))
		find_best(plan, asked, verdict);
	if (is_short) {
		verdict->kind = VERDICT_GPU;
		blame(plan, row, asked, verdict);
		return;
	}
	if (!plan->head) {
		verdict->kind = VERDICT_LEASED;
		blame(plan, row, candidates, verdict);
		policy_reserve(plan, row, candidates);
		verdict->start_ms = plan->head_start_ms;
		return;
	}
	verdict->kind = VERDICT_BEHIND;
	verdict->behind = plan->head;
	verdict->behind_gpus = plan->head_gpus;
	verdict->behind_need = plan->head_need;
	verdict->start_ms = plan->head_start_ms;
}

/* A limit forbids it.  Who waits for what is no lease as well holds nobody back within it. */
static void refuse_by_limit(
	struct plan *plan, const struct plan_row *row, struct verdict *verdict)
{
	struct gpuset candidates = find_candidates(plan, row, row->gpus);

	if (gpuset_count(&candidates) < row->gpus) {
		refuse(plan, row, verdict);
		return;
	}
	quota_hold(&plan->quota, row->uid, verdict->limit.kind, row->ticket);
	verdict->kind = VERDICT_LIMIT;
	verdict->behind = plan->head;
}

struct verdict plan_next(struct plan *plan, const struct plan_row *row)
{
	struct verdict out = { .wanted = row->gpus, .need = row->need };
	struct gpuset room, offered;

	if (row->hold != HOLD_NONE) {
		out.kind = VERDICT_HELD;
		out.hold = row->hold;
		out.held_by = row->held_by;
		out.start_ms = row->held_until_ms;
		return out;
	}
	out.behind = quota_held(&plan->quota, row->uid, row->gpus);
	if (out.behind) {
		out.kind = VERDICT_BEHIND;
		return out;
	}
	room = find_room(plan, row);
	out.free = gpuset_count(&room);
	if (quota_forbids(&plan->quota, row->uid, row->gpus, &row->need, &out.limit)) {
		refuse_by_limit(plan, row, &out);
		return out;
	}
	offered = spare_head(plan, row, room);
	if (gpuset_count(&offered) >= row->gpus && leaves_quota(plan, row))
		start(plan, row, offered, &out);
	else
		refuse(plan, row, &out);
	return out;
}

bool plan_is_closed(const struct plan *plan)
{
	if (plan->quota.all.held)
		return true;
	if (!plan->first_blocked)
		return false;
	gpuset_for_each (slot, &plan->open) {
		/* without a bound for the head nobody is let past it */
		if (plan->backfill_ms || !gpuset_has(&plan->reserved, (unsigned)slot) ||
			is_open(plan, (unsigned)slot, &plan->later[slot]))
			return false;
	}
	return true;
}
