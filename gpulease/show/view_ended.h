/*
 * The jobs that have ended, for --history and --accounting, read from two places: the leases that
 * are over and still stand in the lease files, and the history.
 *
 * While no job waits, no process replaces the leases that are over, and so their ends are not in
 * the history yet.  Reading takes no lock, runs no nvidia-smi and writes nothing.
 */
#ifndef GPULEASE_VIEW_ENDED_H
#define GPULEASE_VIEW_ENDED_H

#include "context.h"
#include "ended_filter.h"
#include "history.h"

enum {
	VIEW_ENDED_MAX = 65536, /* ends that view_ended() returns at most */
	VIEW_ENDED_LATE_MS = 60000,
};

/* What view_each_ended() calls, and what it finds besides. */
struct view_taker {
	/*
	 * Called for each end.  Returns 0 to go on, VIEW_ENOUGH to stop, or a negative errno.
	 * Names and commands that this user may not see are empty.
	 */
	int (*take)(
		struct view_taker *taker, const struct history_end *end, bool is_running);
	bool wants_running; /* also live leases, as if they ended now, before all others */
	bool wants_events;  /* also events, where they stand in the history */
	/* set before the first call */
	unsigned
		gpu_count; /* of the machine in this boot; MIG instances instead of their GPU */
	int64_t real_ms;
	/* set after the last call: lines that are missing among those that were read */
	struct history_gap gap;
};

enum view_taken { VIEW_ENOUGH = 1 };

/*
 * Calls @taker for each job that has ended: for the leases, then for the history, the end that was
 * recorded last first.  Returns 0, also after VIEW_ENOUGH, or a negative errno with the reason in
 * @why.
 */
MUST_CHECK int view_each_ended(
	const struct context *context, struct view_taker *taker, struct why *why);

/*
 * Sets *@ret to a new array, which the caller frees, of the *@ret_count newest ends that pass
 * @filter, oldest first: at most @most, which is not 0, and at most VIEW_ENDED_MAX.  The events
 * since the oldest of them, which do not count for @most, stand between them.  Users have names.
 * Sets *@ret_gap to the lines that are missing among them.  Returns 0, or a negative errno with
 * the reason in @why.
 *
 * The time at which a job was first seen over decides the order, and which ends are the newest.  As
 * ends may be recorded in another order, the walk goes on when there are enough, up to the first
 * end that is VIEW_ENDED_LATE_MS older than all of them.  So the result is exact if each end was
 * recorded within that time.  An end that has to move past more than 256 others does not reach its
 * place.
 */
MUST_CHECK int view_ended(const struct context *context,
	const struct ended_filter *filter, uint64_t most, struct history_end **ret,
	size_t *ret_count, struct history_gap *ret_gap, struct why *why);

/* Puts names in the place of numbers: for the user, and for the user that cancelled it. */
void view_ended_name_users(struct history_end *end);

#endif
