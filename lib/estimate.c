#include "estimate.h"

#include <errno.h>
#include <string.h>

/* So many ends are played forward to; beyond them nobody knows. */
enum { ENDS_MOST = 256 };

/* The facts as they will be, with what those who have started took. */
struct future {
	struct plan_facts facts;
	struct plan_gpu gpus[GPUSET_MAX];
	struct plan_use *uses[GPUSET_MAX]; /* what ->gpus point to, but writable */
	struct plan_user *users;
	const struct plan_row *rows;
	size_t count;
	bool is_started[ESTIMATE_ROWS];
	int64_t end_ms[ESTIMATE_ROWS]; /* of those who have; 0: nobody knows, or over */
	struct plan plan; /* a stack as deep as that would keep its pages while we wait */
};

/* --- what starts -------------------------------------------------------------------- */

static struct plan_user *user_of(struct future *future, uint32_t uid)
{
	size_t i = 0;

	while (i < future->facts.user_count && future->users[i].uid != uid)
		i++;
	if (i == future->facts.user_count) {
		future->users[i] = (struct plan_user){ .uid = uid };
		future->facts.user_count++;
	}
	return &future->users[i];
}

static void start(struct future *future, size_t i, const struct gpuset *gpus)
{
	const struct plan_row *row = &future->rows[i];
	struct plan_user *user = user_of(future, row->uid);

	future->is_started[i] = true;
	if (row->limit_ms)
		future->end_ms[i] = future->facts.now_ms + row->limit_ms + row->grace_ms;
	user->percent += quota_percent(row->gpus, &row->need);
	user->leases++;
	gpuset_for_each (slot, gpus) {
		struct plan_gpu *gpu = &future->gpus[slot];

		future->uses[slot][gpu->use_count++] = (struct plan_use){
			.percent = row->need.percent,
			.mib = need_mib(&row->need, gpu->total_mib),
			.end_ms = future->end_ms[i],
		};
		if (gpu->state == GPU_FREE)
			gpu->state = GPU_LEASED;
	}
}

/* Whether it may not start yet; who comes after another job may not as long as time is played. */
static bool is_held(const struct future *future, const struct plan_row *row)
{
	return row->hold == HOLD_UNTIL ? future->facts.now_ms < row->held_until_ms
				       : row->hold != HOLD_NONE;
}

/* One plan: who starts by it takes its GPUs.  Returns whether somebody still waits. */
static bool start_all(struct future *future, int64_t *ret_start_ms)
{
	struct plan *plan = &future->plan;
	bool waits = false;
	struct gpuset gpus[ESTIMATE_ROWS];
	bool starts[ESTIMATE_ROWS] = { false };

	plan_begin(plan, &future->facts);
	for (size_t i = 0; i < future->count; i++) {
		struct plan_row row = future->rows[i];
		struct verdict verdict;

		if (future->is_started[i])
			continue;
		if (is_held(future, &row)) {
			waits |= row.hold == HOLD_UNTIL;
			continue;
		}
		if (plan_is_closed(plan))
			break;
		row.hold = HOLD_NONE;
		verdict = plan_next(plan, &row);
		starts[i] = verdict.kind == VERDICT_START;
		gpus[i] = verdict.gpus;
		waits |= !starts[i];
	}
	/* not before: the plan rests on the facts as they were */
	for (size_t i = 0; i < future->count; i++)
		if (starts[i]) {
			start(future, i, &gpus[i]);
			ret_start_ms[i] = future->facts.now_ms;
		}
	return waits;
}

/* --- what ends ---------------------------------------------------------------------- */

/* The first moment from which on somebody who is held until then may start; 0: nobody is. */
static int64_t next_hold_end(const struct future *future)
{
	int64_t next_ms = 0;

	for (size_t i = 0; i < future->count; i++) {
		const struct plan_row *row = &future->rows[i];

		if (row->hold == HOLD_UNTIL && is_held(future, row) &&
			(!next_ms || row->held_until_ms < next_ms))
			next_ms = row->held_until_ms;
	}
	return next_ms;
}

/*
 * The next end of a lease, or of what holds somebody until then; 0: none is known.  One that is
 * overdue ends at once.
 */
static int64_t next_end(const struct future *future)
{
	int64_t next_ms = next_hold_end(future);

	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		for (unsigned i = 0; i < future->gpus[slot].use_count; i++) {
			int64_t end_ms = future->uses[slot][i].end_ms;

			if (end_ms && (!next_ms || end_ms < next_ms))
				next_ms = end_ms;
		}
	return next_ms ? max_i64(next_ms, future->facts.now_ms) : 0;
}

/* Takes away what has ended on the GPU in @slot. */
static void clear_gpu(struct future *future, unsigned slot)
{
	struct plan_gpu *gpu = &future->gpus[slot];
	unsigned kept = 0;

	for (unsigned i = 0; i < gpu->use_count; i++) {
		struct plan_use use = future->uses[slot][i];

		if (!use.end_ms || use.end_ms > future->facts.now_ms)
			future->uses[slot][kept++] = use;
	}
	/* who is there besides the leases stays */
	if (gpu->use_count && !kept && gpu->state == GPU_LEASED)
		gpu->state = gpu->foreign_mib    ? GPU_EXTERNAL
			     : gpu->settling_mib ? GPU_SETTLING
						 : GPU_FREE;
	gpu->use_count = kept;
}

/* Goes to the next end and makes room.  Returns false where none is known. */
static bool go_on(struct future *future)
{
	int64_t now_ms = next_end(future);

	if (!now_ms)
		return false;
	future->facts.now_ms = now_ms;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		clear_gpu(future, slot);
	for (size_t i = 0; i < future->count; i++)
		if (future->end_ms[i] && future->end_ms[i] <= now_ms) {
			const struct plan_row *row = &future->rows[i];
			struct plan_user *user = user_of(future, row->uid);

			future->end_ms[i] = 0;
			user->percent -= quota_percent(row->gpus, &row->need);
			user->leases--;
		}
	return true;
}

/* --- all of it ---------------------------------------------------------------------- */

/* Lays the facts' uses into @room, with place for each row on each GPU. */
static void copy_facts(
	struct future *future, const struct plan_facts *facts, struct plan_use *room)
{
	future->facts = *facts;
	memcpy(future->gpus, facts->gpus, sizeof(future->gpus));
	if (facts->user_count)
		memcpy(future->users, facts->users,
			facts->user_count * sizeof(*facts->users));
	future->facts.gpus = future->gpus;
	future->facts.users = future->users;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++) {
		struct plan_gpu *gpu = &future->gpus[slot];

		if (!gpu->exists) {
			gpu->use_count = 0;
			continue;
		}
		if (gpu->use_count)
			memcpy(room, gpu->uses, gpu->use_count * sizeof(*room));
		gpu->uses = future->uses[slot] = room;
		room += gpu->use_count + future->count;
	}
}

int estimate_starts(const struct plan_facts *facts, const struct plan_row *rows,
	size_t count, int64_t *ret_start_ms)
{
	size_t looked_at = count < ESTIMATE_ROWS ? count : ESTIMATE_ROWS;
	autofree struct future *future = calloc(1, sizeof(*future));
	autofree struct plan_user *users = NULL;
	autofree struct plan_use *uses = NULL;
	size_t room = 1;

	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		if (facts->gpus[slot].exists)
			room += facts->gpus[slot].use_count + looked_at;
	uses = calloc(room, sizeof(*uses));
	users = calloc(facts->user_count + looked_at + 1, sizeof(*users));
	if (!future || !uses || !users)
		return -ENOMEM;
	future->rows = rows;
	future->count = looked_at;
	future->users = users;
	copy_facts(future, facts, uses);
	memset(ret_start_ms, 0, count * sizeof(*ret_start_ms));
	for (unsigned ends = 0; ends < ENDS_MOST; ends++)
		if (!start_all(future, ret_start_ms) || !go_on(future))
			break;
	return 0;
}
