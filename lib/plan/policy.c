/*
 * The plan as it goes over the rows.  Three views of the same GPUs are kept up to date:
 *
 * - ->now, the room that the leases and the tickets which start in this plan leave;
 * - ->later, of each reserved GPU, the room that is left once its head has started;
 * - ->free and ->open, the GPUs with room for a whole job, or for any job.  These only save time.
 *
 * policy_reserve.c decides what a head reserves, policy_windows.c which GPUs windows keep from a
 * row.
 */
#include "policy.h"
#include "policy_reserve.h"
#include "policy_seen.h"
#include "policy_windows.h"

bool gpu_state_is_silent(enum gpu_state state)
{
	return state == GPU_LINGERING || state == GPU_SETTLING || state == GPU_LOCKED ||
	       state == GPU_EXTERNAL || state == GPU_UNKNOWN;
}

/* --- what there is ----------------------------------------------------------------- */

/* Whether a job with @need could start on the GPU if that had @room. */
static bool would_fit(
	const struct plan *plan, unsigned slot, const struct room *room, struct need need)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];

	return gpu_admits(gpu, &need, true) &&
	       room_fits(room, gpu, &need, plan->facts->margin_mib);
}

/* Whether any job could start there: one that needs the whole GPU, or one with the least need. */
static bool is_open(const struct plan *plan, unsigned slot, const struct room *room)
{
	return would_fit(plan, slot, room, NEED_WHOLE) ||
	       would_fit(plan, slot, room, (struct need){ .percent = 1 }) ||
	       would_fit(plan, slot, room, (struct need){ .mib = 1 });
}

static void plan_begin_gpu(struct plan *plan, unsigned slot)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	struct need whole = NEED_WHOLE;

	plan->last_start[slot] = PLAN_NO_START;
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
	/* the arrays are not cleared: most of their pages are never touched */
	plan->facts = facts;
	plan->present = plan->usable = plan->free = GPUSET_NONE;
	plan->open = plan->reserved = plan->instances = GPUSET_NONE;
	plan->closed = plan->over = GPUSET_NONE;
	plan->changes_ms = INT64_MAX;
	plan->is_cut = false;
	plan->first_blocked = 0;
	plan->head_count = plan->start_count = 0;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		if (facts->gpus[slot].exists)
			plan_begin_gpu(plan, slot);
	quota_begin(&plan->quota, &facts->limits, facts->users, facts->user_count);
}

/* --- where a row fits -------------------------------------------------------------- */

/*
 * Returns the GPUs of @set that the job may have.  A job of several GPUs gets no MIG instance,
 * because CUDA shows a process only one.  No job gets a GPU that a window or a limit keeps from it.
 */
static struct gpuset may_have(
	const struct plan *plan, const struct plan_row *row, const struct gpuset *set)
{
	struct gpuset out = gpuset_and(set, &row->allow);

	out = gpuset_minus(&out, &plan->closed);
	out = gpuset_minus(&out, &plan->over);
	return row->gpus > 1 ? gpuset_minus(&out, &plan->instances) : out;
}

/*
 * Returns the GPUs of @set on which the job would fit if all leases had ended.  For a job that
 * needs parts of GPUs, stops after @most of them: the search is slow, and callers need no more.
 */
static struct gpuset find_candidates(const struct plan *plan, const struct plan_row *row,
	const struct gpuset *set, unsigned most)
{
	struct gpuset from = may_have(plan, row, set), out = GPUSET_NONE;

	if (need_is_whole(&row->need))
		return gpuset_and(&from, &plan->usable);
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

/* Returns the GPUs on which the job fits now, reserved or not. */
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

/* --- past the heads ------------------------------------------------------------------- */

/* Whether @row is certain to have ended before the head of the reserved GPU could start. */
static bool may_backfill(
	const struct plan *plan, const struct plan_row *row, unsigned slot)
{
	return policy_ends_before(
		plan, row, plan->heads[plan->head_of[slot]].backfill_ms);
}

/*
 * Whether the limits still allow @row once all heads have started.  This counts for a job that will
 * have ended by then, too: as long as it runs, a limit would hold back a head that it binds, and
 * that head would reserve nothing.
 */
static bool leaves_quota(const struct plan *plan, const struct plan_row *row)
{
	struct quota_excess excess;

	return !plan->head_count ||
	       !quota_forbids(&plan->later_quota, row, NULL, &excess);
}

/*
 * What @row counts for the limits once it has these GPUs, as a need.  A lease of a smaller GPU may
 * count more than one of the largest, of which the limits know.
 */
static struct need plan_count(
	const struct plan *plan, const struct plan_row *row, const struct gpuset *gpus)
{
	struct need counts = row->need;

	if (!row->need.percent || need_is_whole(&row->need))
		return counts;
	counts.mib = 0;
	gpuset_for_each (slot, gpus) {
		unsigned percent =
			quota_gpu_percent(&plan->facts->gpus[slot], &row->need);

		counts.percent = percent > counts.percent ? percent : counts.percent;
	}
	return counts;
}

/*
 * Returns the GPUs on which a lease of @row would be above a limit, beside what @quota has but
 * @without.  As a rule that does not depend on the GPU, and quota_forbids() says it.
 */
static struct gpuset find_over(const struct plan *plan, const struct quota *quota,
	const struct plan_row *row, const struct quota_part *without,
	struct quota_excess *ret)
{
	struct gpuset over = GPUSET_NONE;
	struct plan_row counted = *row;

	/* the most that it could count */
	counted.need = NEED_WHOLE;
	if (!row->need.percent || need_is_whole(&row->need) ||
		!quota_forbids(quota, &counted, without, ret))
		return over;
	gpuset_for_each (slot, &plan->present) {
		struct gpuset one = GPUSET_NONE;

		gpuset_add(&one, (unsigned)slot);
		counted.need = plan_count(plan, row, &one);
		if (quota_forbids(quota, &counted, without, ret))
			gpuset_add(&over, (unsigned)slot);
	}
	return over;
}

/*
 * Returns the GPUs of @room on which @row may start: not reserved, or their head loses nothing by
 * it, neither the GPU nor its part of the limits.
 */
static struct gpuset past_heads(
	const struct plan *plan, const struct plan_row *row, struct gpuset room)
{
	struct gpuset reserved = gpuset_and(&room, &plan->reserved), over;
	struct quota_excess excess;

	if (!plan->head_count)
		return room;
	over = find_over(plan, &plan->later_quota, row, NULL, &excess);
	room = gpuset_minus(&room, &over);
	gpuset_for_each (slot, &reserved)
		if (!may_backfill(plan, row, (unsigned)slot) &&
			!room_fits(&plan->later[slot], &plan->facts->gpus[slot],
				&row->need, plan->facts->margin_mib))
			gpuset_remove(&room, (unsigned)slot);
	return room;
}

/*
 * Whether a limit forbids @row a lease, beside what all have but @without, on all GPUs or on so
 * many that the rest would not be enough for it.  Notes in ->over the GPUs on which it does.
 */
static bool is_over_limit(struct plan *plan, const struct plan_row *row,
	const struct quota_part *without, struct quota_excess *ret)
{
	struct gpuset over, all, under;

	if (quota_forbids(&plan->quota, row, without, ret))
		return true;
	over = find_over(plan, &plan->quota, row, without, ret);
	if (gpuset_is_empty(&over))
		return false;
	all = find_candidates(plan, row, &plan->present, GPUSET_MAX);
	under = gpuset_minus(&all, &over);
	plan->over = gpuset_or(&plan->over, &over);
	return gpuset_count(&all) >= row->gpus && gpuset_count(&under) < row->gpus;
}

/* --- verdicts ---------------------------------------------------------------------- */

/* Takes the room of @row on the GPU.  Later rows and reservations count with it. */
static void plan_take(struct plan *plan, const struct plan_row *row, unsigned slot)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];
	struct room *now = &plan->now[slot];

	room_take(now, gpu, &row->need);
	plan->starts[plan->start_count] = (struct plan_start){
		.use = { .percent = row->need.percent,
			.mib = need_mib(&row->need, gpu->total_mib),
			.is_declared = row->need.mib != 0,
			.end_ms = row->limit_ms ? plan->facts->now_ms + row->limit_ms +
							  row->grace_ms
						: 0 },
		.next = plan->last_start[slot],
	};
	plan->last_start[slot] = (uint16_t)plan->start_count++;
	/* a job that ends before the head starts takes nothing from the head */
	if (gpuset_has(&plan->reserved, slot) && !may_backfill(plan, row, slot))
		room_take(&plan->later[slot], gpu, &row->need);
	gpuset_remove(&plan->free, slot);
	if (!is_open(plan, slot, now))
		gpuset_remove(&plan->open, slot);
}

/* Chooses the GPUs of @row among those @offered. */
static struct gpuset plan_choose(
	const struct plan *plan, const struct plan_row *row, struct gpuset offered)
{
	struct policy_seen seen;
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
	struct gpuset out, rest;

	if (!policy_see(plan, row, &seen))
		return choose(&choice);
	choice.room = seen.now;
	choice.free = seen.free;
	/* as it would have chosen; or, if that is not all there, what is there */
	choice.from = past_heads(plan, row, may_have(plan, row, &seen.room));
	choice.from = gpuset_or(&choice.from, &offered);
	out = choose(&choice);
	rest = gpuset_minus(&out, &offered);
	if (gpuset_is_empty(&rest))
		return out;
	choice.from = offered;
	return choose(&choice);
}

/* Starts @row on the best of the GPUs @offered. */
static void plan_start(struct plan *plan, const struct plan_row *row,
	struct gpuset offered, struct verdict *verdict)
{
	struct need counts;

	verdict->kind = VERDICT_START;
	if (row->gpus)
		verdict->gpus = plan_choose(plan, row, offered);
	gpuset_for_each (slot, &verdict->gpus)
		plan_take(plan, row, (unsigned)slot);
	counts = plan_count(plan, row, &verdict->gpus);
	quota_count(&plan->quota, row->uid, row->gpus, &counts);
	if (plan->head_count)
		quota_count(&plan->later_quota, row->uid, row->gpus, &counts);
}

/*
 * Returns the state that keeps @row from the GPU.  As a rule it is the state of the GPU.  But on a
 * free or leased GPU, a row that needs a part may lack memory that no live lease has.  Then the
 * obstacle is the process outside gpulease that holds this memory (or had it, and may take it
 * again), or the lease that has just ended, with memory that is not free yet.
 */
static enum gpu_state plan_obstacle(
	const struct plan *plan, const struct plan_row *row, unsigned slot)
{
	const struct plan_gpu *gpu = &plan->facts->gpus[slot];

	/* what keeps the GPU from everyone comes first */
	if (gpuset_has(&plan->closed, slot) && gpu->state <= GPU_SETTLING)
		return GPU_KEPT;
	if (!(gpu->foreign_mib || gpu->settling_mib) || gpu->state > GPU_LINGERING ||
		need_is_whole(&row->need) ||
		would_fit(plan, slot, &plan->now[slot], row->need))
		return gpu->state;
	return gpu->foreign_mib ? GPU_EXTERNAL : GPU_SETTLING;
}

/*
 * Notes in @verdict the strongest state that keeps @row from a GPU of @from, and the GPUs with that
 * state.  A live lease is not noted: the kind of the verdict says it.
 */
static void verdict_blame(const struct plan *plan, const struct plan_row *row,
	struct gpuset from, struct verdict *verdict)
{
	gpuset_for_each (slot, &from) {
		enum gpu_state state = plan_obstacle(plan, row, (unsigned)slot);

		if (state > verdict->state && state != GPU_LEASED) {
			verdict->state = state;
			verdict->slot = (uint32_t)slot;
			verdict->others = GPUSET_NONE;
		} else if (state == verdict->state) {
			gpuset_add(&verdict->others, (unsigned)slot);
		}
	}
}

/* The largest share that fits there.  A share without --vram takes as much of the memory. */
static unsigned largest_share(const struct room *room, const struct plan_gpu *gpu,
	const struct need *need, uint64_t margin_mib)
{
	uint64_t percent = room->percent, mib = room->mib;

	if (room->has_margin)
		mib -= mib < margin_mib ? mib : margin_mib;
	if (!need->mib && gpu->total_mib && mib * 100 / gpu->total_mib < percent)
		percent = mib * 100 / gpu->total_mib;
	return (unsigned)percent;
}

/*
 * Notes in @verdict the most room on any GPU of @from, for a row that needs a part of one.  Memory
 * counts only on GPUs that also have the share.
 */
static void verdict_find_best(
	const struct plan *plan, struct gpuset from, struct verdict *verdict)
{
	gpuset_for_each (slot, &from) {
		const struct plan_gpu *gpu = &plan->facts->gpus[slot];
		const struct room *room = &plan->now[slot];
		unsigned share =
			largest_share(room, gpu, &verdict->need, plan->facts->margin_mib);

		if (!gpu_admits(gpu, &verdict->need, true))
			continue;
		/* it has room, but no record for a further lease */
		if (!room->leases && room->percent)
			verdict->slot = (uint32_t)slot;
		if (share > verdict->best.percent)
			verdict->best.percent = share;
		if (room->mib > verdict->best.mib &&
			room->percent >= verdict->need.percent)
			verdict->best.mib = room->mib;
		if (room->leases > verdict->best.leases)
			verdict->best.leases = room->leases;
	}
}

/* Returns the first head that has reserved a GPU of @set; NULL: none has. */
static const struct plan_head *plan_first_head_on(
	const struct plan *plan, const struct gpuset *set)
{
	for (unsigned i = 0; i < plan->head_count && !gpuset_is_empty(set); i++) {
		struct gpuset common = gpuset_and(set, &plan->heads[i].reserved);

		if (!gpuset_is_empty(&common))
			return &plan->heads[i];
	}
	return NULL;
}

/*
 * Makes @row a head that reserves some of @candidates.  @kept are the GPUs on which @row would fit
 * now, but which earlier heads keep.
 */
static void plan_add_head(struct plan *plan, const struct plan_row *row,
	struct gpuset candidates, struct gpuset kept, struct verdict *verdict)
{
	const struct plan_head *before = plan_first_head_on(plan, &kept), *head;
	struct gpuset allowed = may_have(plan, row, &plan->present);

	verdict->kind = VERDICT_LEASED;
	verdict->free -= gpuset_count(&kept);
	verdict->behind = before ? before->ticket : 0;
	/* before policy_reserve(), which adds the head */
	verdict->is_first = !plan->head_count;
	if (!need_is_whole(&row->need))
		verdict_find_best(plan, gpuset_minus(&allowed, &plan->reserved), verdict);
	verdict_blame(plan, row, candidates, verdict);
	head = policy_reserve(plan, row, candidates);
	verdict->start_ms = verdict->is_first ? head->start_ms : 0;
}

/*
 * Returns the first head that has reserved GPUs on which @row would fit if all leases had ended.
 * Returns NULL if it would fit on fewer than @missing of all reserved GPUs, so it does not wait for
 * the heads alone.
 */
static const struct plan_head *plan_find_head(
	const struct plan *plan, const struct plan_row *row, unsigned missing)
{
	const struct plan_head *first = NULL;
	unsigned found = 0;

	for (unsigned i = 0; i < plan->head_count && found < missing; i++) {
		struct gpuset set = find_candidates(
			plan, row, &plan->heads[i].reserved, missing - found);

		found += gpuset_count(&set);
		if (found && !first)
			first = &plan->heads[i];
	}
	return found < missing ? NULL : first;
}

/* Sets the verdict: the ticket waits for @head.  A start time is known only for the first head. */
static void verdict_come_behind(
	const struct plan *plan, const struct plan_head *head, struct verdict *verdict)
{
	verdict->kind = VERDICT_BEHIND;
	verdict->behind = head->ticket;
	verdict->behind_gpus = head->gpus;
	verdict->behind_need = head->need;
	verdict->start_ms = head == plan->heads ? head->start_ms : 0;
}

/* Refuses @row because the end of leases would not be enough.  It reserves nothing. */
static void plan_refuse_by_gpu(
	const struct plan *plan, const struct plan_row *row, struct verdict *verdict)
{
	struct gpuset allowed = gpuset_and(&plan->present, &row->allow);

	verdict->kind = VERDICT_GPU;
	verdict->there = gpuset_count(&allowed);
	if (!need_is_whole(&row->need))
		verdict_find_best(plan, gpuset_minus(&allowed, &plan->closed), verdict);
	verdict_blame(plan, row, allowed, verdict);
}

/*
 * Finds what keeps @row waiting, which has not found enough room.  @kept are the GPUs on which @row
 * would fit now, but which the heads keep.
 */
static void plan_refuse(struct plan *plan, const struct plan_row *row, struct gpuset kept,
	struct verdict *verdict)
{
	bool can_reserve = !plan->is_cut && leaves_quota(plan, row);
	struct gpuset left = gpuset_minus(&plan->present, &plan->reserved);
	struct gpuset candidates = find_candidates(
		plan, row, &left, can_reserve ? (unsigned)GPUSET_MAX : row->gpus);
	unsigned count = gpuset_count(&candidates);
	const struct plan_head *head = plan->heads;

	if (!plan->first_blocked)
		plan->first_blocked = row->ticket;
	/* enough GPUs that leases alone keep busy, and that no head has reserved */
	if (count >= row->gpus && can_reserve) {
		plan_add_head(plan, row, candidates, kept, verdict);
		return;
	}
	/*
	 * Enough GPUs, but it may not reserve: it waits for the first head.  There is one, because
	 * only a head can use up the limits or allow the cut of a plan that gets here.  Too few
	 * GPUs: it waits for the head that has reserved GPUs on which it would fit.
	 */
	if (count < row->gpus)
		head = plan_find_head(plan, row, row->gpus - count);
	if (head)
		verdict_come_behind(plan, head, verdict);
	else
		plan_refuse_by_gpu(plan, row, verdict);
}

/* Whether a limit forbids @row a lease only because of leases that it does not see. */
static bool is_limit_unseen(struct plan *plan, const struct plan_row *row)
{
	const struct quota_part unseen = policy_unseen(plan, row);
	struct quota_excess excess;

	return unseen.all_leases && !is_over_limit(plan, row, &unseen, &excess);
}

/*
 * Refuses @row because a limit forbids it.  Later tickets under the limit then wait for @row.
 * Not so if @row also lacks GPUs that the end of leases would not bring: they may never come, so
 * @row must not hold other tickets back.
 */
static void plan_refuse_by_limit(
	struct plan *plan, const struct plan_row *row, struct verdict *verdict)
{
	struct gpuset candidates;

	plan->over = policy_strange(plan, row);
	candidates = find_candidates(plan, row, &plan->present, row->gpus);
	if (gpuset_count(&candidates) < row->gpus || is_limit_unseen(plan, row)) {
		plan_refuse(plan, row, GPUSET_NONE, verdict);
		return;
	}
	quota_hold(&plan->quota, row->uid, verdict->limit.kind, row->ticket);
	verdict->kind = VERDICT_LIMIT;
	verdict->behind = plan->head_count ? plan->heads[0].ticket : 0;
}

/*
 * Notes in @verdict, of a row that does not start, what windows keep from it: the longest time
 * limit with which it would start now.
 */
static void verdict_name_window(
	struct plan *plan, const struct plan_row *row, struct verdict *verdict)
{
	struct gpuset closed = plan->closed, room, kept;
	struct plan_row shorter = *row;

	/* as if the limit were so short that no window which begins later keeps a GPU */
	plan->closed = policy_begun(plan, row);
	room = find_room(plan, row);
	kept = gpuset_and(&room, &closed);
	shorter.limit_ms = policy_limit_before(plan, row, &kept);
	room = past_heads(plan, &shorter, room);
	if (shorter.limit_ms > 0 && gpuset_count(&room) >= row->gpus &&
		leaves_quota(plan, row)) {
		verdict->under_ms = shorter.limit_ms;
		/* there may be leased GPUs, too; but this the user can do something about */
		verdict->state = GPU_KEPT;
		verdict->slot = (uint32_t)gpuset_next(&kept, 0);
		verdict->others = kept;
		gpuset_remove(&verdict->others, verdict->slot);
	}
	plan->closed = closed;
	if (verdict->state == GPU_KEPT)
		verdict->window = policy_window_of(plan, row, verdict->slot);
}

struct verdict plan_next(struct plan *plan, const struct plan_row *row)
{
	struct verdict out = { .wanted = row->gpus, .need = row->need };
	struct gpuset room, offered;
	bool is_over;

	if (row->hold != DEPENDENCY_NONE) {
		out.kind = VERDICT_HELD;
		out.hold = row->hold;
		out.held_by = row->held_by;
		out.start_ms = row->held_until_ms;
		return out;
	}
	/* an earlier ticket waits for a limit that binds this one, too */
	out.behind = quota_held(&plan->quota, row->uid, row->gpus);
	if (out.behind) {
		out.kind = VERDICT_BEHIND;
		return out;
	}
	plan->closed = policy_closed(plan, row);
	plan->over = policy_strange(plan, row);
	is_over = is_over_limit(plan, row, NULL, &out.limit);
	room = find_room(plan, row);
	out.free = gpuset_count(&room);
	if (is_over) {
		plan_refuse_by_limit(plan, row, &out);
		return out;
	}
	/* it starts if that delays no head, neither by its GPUs nor by the limits */
	offered = past_heads(plan, row, room);
	if (gpuset_count(&offered) >= row->gpus && leaves_quota(plan, row))
		plan_start(plan, row, offered, &out);
	else
		plan_refuse(plan, row, gpuset_minus(&room, &offered), &out);
	if (out.kind != VERDICT_START && !gpuset_is_empty(&plan->closed))
		verdict_name_window(plan, row, &out);
	return out;
}

bool plan_could_start(struct plan *plan, const struct plan_row *row)
{
	struct gpuset room;
	struct quota_excess excess;

	plan->closed = policy_closed(plan, row);
	plan->over = find_over(plan, &plan->quota, row, NULL, &excess);
	room = find_room(plan, row);
	return row->hold == DEPENDENCY_NONE && gpuset_count(&room) >= row->gpus &&
	       !quota_forbids(&plan->quota, row, NULL, &excess);
}

bool plan_is_closed(const struct plan *plan)
{
	if (plan->quota.all.held)
		return true;
	if (!plan->first_blocked)
		return false;
	gpuset_for_each (slot, &plan->open) {
		/*
		 * Open and not reserved: a job may start.  Reserved: a job may start if it ends
		 * before ->backfill_ms, or if the head leaves enough.
		 */
		if (!gpuset_has(&plan->reserved, (unsigned)slot) ||
			plan->heads[plan->head_of[slot]].backfill_ms ||
			is_open(plan, (unsigned)slot, &plan->later[slot]))
			return false;
	}
	return true;
}

bool plan_can_be_cut(const struct plan *plan)
{
	return plan_is_closed(plan) && (plan->head_count || plan->quota.all.held);
}

void plan_cut(struct plan *plan)
{
	plan->is_cut = true;
}
