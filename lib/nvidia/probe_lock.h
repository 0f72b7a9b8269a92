/*
 * Decides which process may run a probe, by a row of locks.  On a healthy machine one process
 * probes at a time, and the others wait for its result.  If nvidia-smi hangs, at most two probe.
 *
 * probe.lock, probe.lock.2 …   one record plock/1: since when its holder has been probing
 *
 * A process tries probe.lock first.  While another process holds it, the process waits for the
 * holder's result, for up to 2 s; then it tries the next lock.  A healthy holder releases its lock
 * at the deadline of its nvidia-smi.  So a lock that is held for longer has a holder that was
 * stopped or frozen.  The record shows how long the lock has been held, so other processes skip
 * such a lock at once, without waiting for 2 s.  Holders that are killed one after the other count
 * as one holder.  A process that has skipped all locks probes without one: the locks save work, and
 * must not hold up the queue.
 *
 * A process may start nvidia-smi while it holds the lock: the child closes its copy of the
 * descriptor before exec, so an nvidia-smi that hangs never holds the lock.
 *
 * A crash releases the lock and leaves the record.  The next holder sees from the record that the
 * last probe did not end, which may have been a hang, and overwrites it.
 */
#ifndef GPULEASE_PROBE_LOCK_H
#define GPULEASE_PROBE_LOCK_H

#include "statedir.h"

enum { PROBE_LOCKS = 4 };
enum probe_lock_outcome { PROBE_LOCK_BUSY = 1 };

/* How long a process waits for the holder of the first lock, and of each other lock. */
struct probe_patience {
	int64_t first_ms, others_ms;
};

/* The lock of one process, or its attempt to get one. */
struct probe_lock {
	int fd;          /* -1: not held */
	bool has_doubt;  /* while held: the probe before did not end; it may hang */
	int64_t busy_ms; /* since when this process has waited; 0: it does not wait */
	int64_t taken_ms[PROBE_LOCKS]; /* the time in each record when it was last read */
	/* since when it was seen held without a result; 0: not read */
	int64_t seen_ms[PROBE_LOCKS];
};

#define PROBE_LOCK_NONE ((struct probe_lock){ .fd = -1 })

/*
 * Takes a lock in @dir without waiting.  Returns 0 if the process may probe; ->fd is then the
 * lock, or -1 if the process probes without one.  Returns PROBE_LOCK_BUSY while other processes
 * are probing: the caller calls again later.
 */
MUST_CHECK int probe_lock_take(const struct statedir *dir, struct probe_lock *lock,
	const struct probe_patience *patience, int64_t now_ms);

/* Unlocks.  If the probe @has_ended, clears the record, so that the next holder has no doubt. */
void probe_lock_release(
	const struct statedir *dir, struct probe_lock *lock, bool has_ended);

/* Forgets how long other processes have held the locks: their times begin anew. */
void probe_lock_forget(struct probe_lock *lock);

#endif
