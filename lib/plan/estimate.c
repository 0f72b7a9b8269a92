#include "estimate.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Time is played forward through so many ends.  Starts after these are not known. */
enum { ENDS_MOST = 256 };

/* The facts at the time that is played, with the leases of the rows that have started. */
struct future {
	struct plan_facts facts;
	struct plan_gpu gpus[GPUSET_MAX];
	struct plan_use *uses[GPUSET_MAX]; /* the writable arrays that ->gpus point to */
	struct plan_user *users;
	const struct plan_row *rows;
	size_t count;
	bool is_started[ESTIMATE_ROWS];
	/* of started rows; 0: not known, or already over */
	int64_t end_ms[ESTIMATE_ROWS];
	struct plan plan;
};

/*
 * Returns a future of zeros, mostly not touched; NULL: no memory.  It has pages of its own, because
 * a process that estimates and then waits would keep those of its stack and of its heap.
 */
static struct future *future_new(void)
{
	struct future *future = mmap(NULL, sizeof(*future), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return future == MAP_FAILED ? NULL : future;
}

static void future_release(struct future **future)
{
	if (*future)
		(void)munmap(*future, sizeof(**future));
}

/* --- what starts -------------------------------------------------------------------- */

static struct plan_user *future_user(struct future *future, uint32_t uid)
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

static unsigned future_percent(const struct future *future, const struct plan_row *row)
{
	return quota_percent(row->gpus, &row->need, future->facts.limits.gpu_mib);
}

static void future_start(struct future *future, size_t i, const struct gpuset *gpus)
{
	const struct plan_row *row = &future->rows[i];
	struct plan_user *user = future_user(future, row->uid);

	future->is_started[i] = true;
	if (row->limit_ms)
		future->end_ms[i] = future->facts.now_ms + row->limit_ms + row->grace_ms;
	user->percent += future_percent(future, row);
	user->leases++;
	gpuset_for_each (slot, gpus) {
		struct plan_gpu *gpu = &future->gpus[slot];

		future->uses[slot][gpu->use_count++] = (struct plan_use){
			.percent = row->need.percent,
			.mib = need_mib(&row->need, gpu->total_mib),
			.is_declared = row->need.mib != 0,
			.end_ms = future->end_ms[i],
		};
		if (gpu->state == GPU_FREE)
			gpu->state = GPU_LEASED;
	}
}

/* Whether @row may not start yet.  One that waits for another job may not at any time played. */
static bool row_is_held(const struct future *future, const struct plan_row *row)
{
	return row->hold == DEPENDENCY_UNTIL ? future->facts.now_ms < row->held_until_ms
					     : row->hold != DEPENDENCY_NONE;
}

/* Makes one plan, and starts the rows that it starts.  Returns whether a row still waits. */
static bool future_start_all(struct future *future, int64_t *ret_start_ms)
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
		if (row_is_held(future, &row)) {
			waits |= row.hold == DEPENDENCY_UNTIL;
			continue;
		}
		if (plan_is_closed(plan))
			break;
		row.hold = DEPENDENCY_NONE;
		verdict = plan_next(plan, &row);
		starts[i] = verdict.kind == VERDICT_START;
		gpus[i] = verdict.gpus;
		waits |= !starts[i];
	}
	/* only now: the plan reads the facts until its last row */
	for (size_t i = 0; i < future->count; i++)
		if (starts[i]) {
			future_start(future, i, &gpus[i]);
			ret_start_ms[i] = future->facts.now_ms;
		}
	return waits;
}

/* --- what ends ---------------------------------------------------------------------- */

/*
 * Returns the first time at which a row with DEPENDENCY_UNTIL may start; 0: there is no such row.
 */
static int64_t future_next_hold_end(const struct future *future)
{
	int64_t next_ms = 0;

	for (size_t i = 0; i < future->count; i++) {
		const struct plan_row *row = &future->rows[i];

		if (row->hold == DEPENDENCY_UNTIL && row_is_held(future, row) &&
			(!next_ms || row->held_until_ms < next_ms))
			next_ms = row->held_until_ms;
	}
	return next_ms;
}

/*
 * Returns the next time at which a lease ends, a row is no longer held, or a window changes what
 * the last plan has said; 0: not known.  A lease that is overdue ends at once.
 */
static int64_t future_next_end(const struct future *future)
{
	int64_t next_ms = future_next_hold_end(future);
	int64_t window_ms = future->plan.changes_ms;

	if (window_ms != INT64_MAX && (!next_ms || window_ms < next_ms))
		next_ms = window_ms;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		for (unsigned i = 0; i < future->gpus[slot].use_count; i++) {
			int64_t end_ms = future->uses[slot][i].end_ms;

			if (end_ms && (!next_ms || end_ms < next_ms))
				next_ms = end_ms;
		}
	return next_ms ? max_i64(next_ms, future->facts.now_ms) : 0;
}

/* Removes the leases that have ended from the GPU in @slot. */
static void future_clear_gpu(struct future *future, unsigned slot)
{
	struct plan_gpu *gpu = &future->gpus[slot];
	unsigned kept = 0;

	for (unsigned i = 0; i < gpu->use_count; i++) {
		struct plan_use use = future->uses[slot][i];

		if (!use.end_ms || use.end_ms > future->facts.now_ms)
			future->uses[slot][kept++] = use;
	}
	/* what is there besides the leases stays */
	if (gpu->use_count && !kept)
		gpu->state = gpu_state_without_leases(gpu);
	gpu->use_count = kept;
}

/* Plays time forward to the next end, and makes room.  Returns false if no end is known. */
static bool future_advance(struct future *future)
{
	int64_t now_ms = future_next_end(future);

	if (!now_ms)
		return false;
	future->facts.now_ms = now_ms;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		future_clear_gpu(future, slot);
	for (size_t i = 0; i < future->count; i++)
		if (future->end_ms[i] && future->end_ms[i] <= now_ms) {
			const struct plan_row *row = &future->rows[i];
			struct plan_user *user = future_user(future, row->uid);

			future->end_ms[i] = 0;
			user->percent -= future_percent(future, row);
			user->leases--;
		}
	return true;
}

/* --- the estimate ------------------------------------------------------------------- */

/* Copies @facts.  Puts the uses into @room, with space for one more use per row on each GPU. */
static void future_copy_facts(
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
	__attribute__((cleanup(future_release))) struct future *future = future_new();
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
	future_copy_facts(future, facts, uses);
	memset(ret_start_ms, 0, count * sizeof(*ret_start_ms));
	for (unsigned ends = 0; ends < ENDS_MOST; ends++)
		if (!future_start_all(future, ret_start_ms) || !future_advance(future))
			break;
	return 0;
}
