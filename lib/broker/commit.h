/*
 * Writes leases.  A process locks the lease files of the GPUs that it takes, reads and plans
 * everything again with the locks held, and then writes its lease into each file.  The locks are
 * held for this alone, never while a process waits for an event.  A process that is stopped while
 * it holds them withholds only these GPUs.
 */
#ifndef GPULEASE_COMMIT_H
#define GPULEASE_COMMIT_H

#include "snapshot.h"

/* Outcomes of the functions below, beside 0 and negative errnos. */
enum commit_outcome {
	/* another process has locked some of the files: try again later */
	COMMIT_LOCKED = 200,
	COMMIT_LEFT = 201, /* some leases have leftover processes: read again */
	COMMIT_MENDED = 202,
	COMMIT_READ = 203,   /* the view was read again, and has to be judged again */
	COMMIT_MARKED = 204, /* the lease names a user who has cancelled it before */
};

/*
 * Locks the lease files of @set in ascending order of their uuids, within 50 ms for all of them.
 * Returns 0 with all locked; COMMIT_LOCKED: some could not be locked, none is locked now, and
 * ->locked_until_ms of these is set in @view; -EBADF: a file is missing; or another negative errno.
 */
MUST_CHECK int commit_lock(struct snapshot *view, const struct gpuset *set);

/*
 * Whether all files of @set are still locked.  A file that was replaced since is not locked any
 * more.
 */
bool commit_is_locked(const struct snapshot *view, const struct gpuset *set);

/* Releases all locks that this process holds on lease files of @view. */
void commit_unlock(struct snapshot *view);

/* Whether the files of @set could be locked just now; keeps no lock. */
bool commit_could_lock(struct snapshot *view, const struct gpuset *set);

/*
 * Mends the doubtful lease files if every live job has a lease that can be read (integrity.h):
 * locks them, reads everything again, and writes the missing leases back.  Returns 0: it has done
 * nothing; COMMIT_MENDED: it has mended a file; or COMMIT_READ: it has not, as another process was
 * quicker or the file cannot be written.  After the last two, @view has to be judged again.
 */
int commit_mend(struct snapshot *view);

/*
 * Writes @lease into each file of @set.  The files must be locked, and @view read since then.
 * Before that it removes leases that are over from these files, with a line in the history, and
 * mends doubtful files.  Returns 0, or a negative errno; then no record of @lease is left.
 */
MUST_CHECK int commit_write(
	struct snapshot *view, const struct gpuset *set, const struct lease *lease);

/* Whether the names of all files of @set still lead to the files that are open in @view. */
bool commit_is_current(const struct snapshot *view, const struct gpuset *set);

/*
 * Removes the lease with @token from the files of @set, which must be locked, as if it had never
 * been written there.
 */
void commit_erase(struct snapshot *view, const struct gpuset *set, const char *token);

/*
 * Removes from the files of @set the leases that name @slot and are over, with a line in the
 * history.  The files must be locked, and @view read since then.  Returns 0 or a negative errno.
 */
MUST_CHECK int commit_forget_slot(
	struct snapshot *view, const struct gpuset *set, unsigned slot);

/*
 * Writes the command of a supervisor into the records of its lease, with @token on the GPUs of
 * @set, so that the lease outlives the supervisor as long as the command lives.  Returns 0;
 * COMMIT_LOCKED: the files that were locked do not have it yet; or a negative errno.
 */
MUST_CHECK int commit_note_command(struct snapshot *view, const char *token,
	const struct gpuset *set, const struct command *runs);

/*
 * Writes what the job says of itself into the records of its lease; "": nothing.  @note is shorter
 * than NOTE_SIZE.  Returns as commit_note_command().
 */
MUST_CHECK int commit_note_text(struct snapshot *view, const char *token,
	const struct gpuset *set, const char *note);

/*
 * Writes the time limit @limit_ms into the records of a lease, if @was_ms is the limit in the first
 * of them.  Returns as commit_note_command() does; COMMIT_LOCKED also if another process has
 * changed the limit.
 */
MUST_CHECK int commit_note_limit(struct snapshot *view, const char *token,
	const struct gpuset *set, int64_t was_ms, int64_t limit_ms);

/*
 * For a process that is about to end a job by TERM: writes into the record of its lease, in the
 * file of the lowest GPU of @set, that user @uid ends it.  Leaves the file locked.  The caller
 * sends TERM, takes the mark back if the job had ended before, and calls commit_unlock().  So the
 * process that records the end, which locks the file, sees the mark only if the job got TERM while
 * it lived.  Returns 0; COMMIT_MARKED: the mark is another one, which stays; COMMIT_LOCKED: the
 * file is not locked by this process, and there is no mark; or a negative errno.
 */
MUST_CHECK int commit_mark_cancelled(
	struct snapshot *view, const char *token, const struct gpuset *set, uint32_t uid);

/* Takes the mark back that was set just now, with the file still locked.  A failure leaves it. */
void commit_unmark_cancelled(
	struct snapshot *view, const char *token, const struct gpuset *set);

/*
 * Gives back the lease with @token in each file of the GPUs of @set that has it, for an owner that
 * lives on.  The lease is over at once or, if @left is not NULL, when @left has ended: a leftover
 * process of the job.  The caller rings the waiters.  Returns 0; COMMIT_LOCKED: the lease still
 * stands in the files that were locked; or a negative errno.  A crash in between leaves some of the
 * records with a dead owner.
 */
MUST_CHECK int commit_release(struct snapshot *view, const char *token,
	const struct gpuset *set, const struct owner *left);

/*
 * Gives a lease back as commit_release() does, for a process that is about to end: tries again
 * while files are locked, at most 20 times, and then rings the waiters.
 */
void commit_give_back(struct snapshot *view, const char *token, const struct gpuset *set,
	const struct owner *left);

/*
 * Call this before a job locks the files of @set.  Looks for leftover processes of the leases there
 * that seem to be over (snapshot_look()), and of leases that are ->is_unclear.  Notes such a
 * process in the lease's record, so that other waiters watch it.  Returns 0: all these leases are
 * over; COMMIT_LEFT: some are not; or a negative errno.  Does nothing if no lease needs a look.
 */
MUST_CHECK int commit_look(struct snapshot *view, const struct gpuset *set);

/*
 * Declares lingering leases over: their owners have been dead for the linger time, usually 60 s,
 * and all their GPUs were idle meanwhile, although processes of the jobs are left.  It removes the
 * live FIFO under the lock, so that all processes see the lease as over.  Returns whether there was
 * such a lease.
 */
bool commit_end_lingering(struct snapshot *view);

#endif
