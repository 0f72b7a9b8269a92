/*
 * Making a lease: the files of its GPUs locked, everything read and planned again with the
 * locks held, then written.  The locks are held for this alone, never while anybody waits;
 * a process that is stopped in between withholds just these GPUs.
 */
#ifndef GPULEASE_COMMIT_H
#define GPULEASE_COMMIT_H

#include "history.h"
#include "snapshot.h"

/*
 * Locks the lease files of @set, in ascending order of their uuids, within 50 ms for all.
 * 0 with all locked; COMMIT_LOCKED: some were not to be had, none is locked now, and those
 * are marked ->locked_until_ms in @view; or a negative errno.
 */
enum { COMMIT_LOCKED = 1 };
MUST_CHECK int commit_lock(struct snapshot *view, const struct gpuset *set);

/* Whether all files of @set are still locked, as they are not once one was replaced. */
bool commit_is_locked(const struct snapshot *view, const struct gpuset *set);

void commit_unlock(struct snapshot *view);

/*
 * With the files of @set locked and @view read since: removes what is over from them, telling
 * the history, and writes @lease into each.  0, or a negative errno after which no record of
 * @lease is left.
 */
MUST_CHECK int commit_write(
	struct snapshot *view, const struct gpuset *set, const struct lease *lease);

/*
 * What the history is to say of the end of @over, a lease that is over, as far as can be told
 * by who was not there: by whom it was cancelled, as a number, or that its limit was reached.
 */
void commit_describe_end(const struct snapshot *view, const struct snapshot_lease *over,
	struct history_end *end);

/*
 * Tells the history how the lease with @token ended, which is over, and marks its record so
 * that nobody tells it again: for who was there at the end and knows.  @by may be NULL.
 * Nothing happens where it was told or replaced already.
 */
void commit_record_end(
	struct snapshot *view, const char *token, const char *how, const char *by);

/*
 * Declares leases over whose owners have been dead for 60 s while all their GPUs were idle,
 * although somebody they left behind lives: removes their FIFOs under the lock, which makes
 * it so for everybody.  Returns whether there was one.
 */
bool commit_end_lingering(struct snapshot *view);

#endif
