/*
 * Which process may run a probe: a row of single-flight locks, so that at most two probes run
 * at a time on a machine whose nvidia-smi hangs.
 *
 *	probe.lock, probe.lock.2 …   one record plock/1: since when its holder has been probing
 *
 * A process takes the first lock that is free.  While probe.lock is held it waits for the
 * holder's result, and tries the second lock once probe.lock has been held for 2 s.  A
 * healthy holder lets go at the deadline of its nvidia-smi.  So a lock that is held for longer
 * has a holder that was stopped or frozen: other processes skip that lock, at once and not
 * after 2 s, because the record tells its age.  A process that has skipped all locks probes
 * without one: a lock is a courtesy and must not hold up the queue.
 *
 * nvidia-smi may be started with the lock held: the child closes its copy before exec, so one
 * that hangs never holds it.
 *
 * A crash lets go of the lock and leaves the record.  The next holder sees by it that the last
 * probe came to no end, which may have been a hang, and overwrites it.
 */
#ifndef GPULEASE_PROBE_LOCK_H
#define GPULEASE_PROBE_LOCK_H

#include "statedir.h"

enum { PROBE_BUSY = 1, PROBE_LOCKS = 4 };

/* How long a process waits for the holder of the first lock, and of each other lock. */
struct probe_patience {
	int64_t first_ms, others_ms;
};

/* One process's way to a lock. */
struct probe_lock {
	int fd;          /* -1: not held */
	bool has_doubt;  /* while held: the probe before came to no end; it may hang */
	int64_t busy_ms; /* since when this process has been waiting; 0: it is not */
	int64_t taken_ms[PROBE_LOCKS]; /* what each record said when it was read last */
	int64_t seen_ms[PROBE_LOCKS];  /* since when it has said so; 0: it was not read */
};

#define PROBE_LOCK_NONE ((struct probe_lock){ .fd = -1 })

/*
 * Takes a lock in @dir without waiting.  0: the process may probe, and ->fd is the lock, or -1 if
 * it probes without a lock; PROBE_BUSY: other processes are probing, call again.
 */
MUST_CHECK int probe_lock_take(const struct statedir *dir, struct probe_lock *lock,
	const struct probe_patience *patience, int64_t now_ms);

/* Unlocks, and notes whether the probe @has_ended: if so the next holder has no doubt. */
void probe_lock_release(
	const struct statedir *dir, struct probe_lock *lock, bool has_ended);

/* Forgets how long other processes have held the locks. */
void probe_lock_forget(struct probe_lock *lock);

#endif
