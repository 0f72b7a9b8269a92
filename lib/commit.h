/*
 * Making a lease: the files of its GPUs locked, everything read and planned again with the
 * locks held, then written.  The locks are held for this alone, never while anybody waits;
 * a process that is stopped in between withholds just these GPUs.
 */
#ifndef GPULEASE_COMMIT_H
#define GPULEASE_COMMIT_H

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

/* Whether the files of @set could be locked just now; no lock is kept. */
bool commit_could_lock(struct snapshot *view, const struct gpuset *set);

/*
 * Makes whole what lease files are in doubt, where the account is settled: they are locked,
 * and everything is read and accounted for again.  Returns whether there was one; @view has
 * been read anew then, and wants to be judged.
 */
bool commit_mend(struct snapshot *view);

/*
 * With the files of @set locked and @view read since: removes what is over from them, telling
 * the history, mends what is in doubt, and writes @lease into each.  0, or a negative errno
 * after which no record of @lease is left.
 */
MUST_CHECK int commit_write(
	struct snapshot *view, const struct gpuset *set, const struct lease *lease);

/*
 * With the files of @set locked and @view read since: removes from these files the leases that name
 * @slot and are over, and tells the history.  0 or a negative errno.
 */
MUST_CHECK int commit_forget_slot(
	struct snapshot *view, const struct gpuset *set, unsigned slot);

/*
 * For a supervisor: notes its command in the records of its lease, with @token on the GPUs of @set,
 * so that the lease outlives the supervisor as long as the command lives.  0; COMMIT_LOCKED: some
 * files were locked and do not say so yet, call again after a moment; or a negative errno.
 */
MUST_CHECK int commit_note_command(struct snapshot *view, const char *token,
	const struct gpuset *set, const struct command *runs);

/*
 * For an owner that lives on: gives back the lease with @token on the GPUs of @set, in each of
 * their files that has it.  The lease is over then, or once its process @left has ended (NULL:
 * there is none); the caller rings the waiters.  0; COMMIT_LOCKED: some files were locked, call
 * again after a moment; or a negative errno.  A crash in between leaves some of the records with a
 * dead owner.
 */
MUST_CHECK int commit_release(struct snapshot *view, const char *token,
	const struct gpuset *set, const struct owner *left);

/*
 * Before a job locks the files of @set to take their GPUs: looks for processes of the leases there
 * that seem to be over (snapshot_look()).  Notes a process that it finds in the lease's record, so
 * that other waiters follow it.  0: all these leases are over; COMMIT_LEFT: some are not, read
 * again; or a negative errno.  Does nothing if no lease has just ended.
 */
enum { COMMIT_LEFT = 1 };
MUST_CHECK int commit_look(struct snapshot *view, const struct gpuset *set);

/*
 * Declares leases over whose owners have been dead for the linger time, usually 60 s, while
 * all their GPUs were idle, although somebody they left behind lives: removes their FIFOs
 * under the lock, which makes it so for everybody.  Returns whether there was one.
 */
bool commit_end_lingering(struct snapshot *view);

#endif
