/*
 * The GPUs of exclusive steps: steps of one lease that each want GPUs for themselves.
 *
 *	live/TOKEN.N		one GPU of the lease; locked with flock(2) by the parent of the step
 *	live/TOKEN.steps	its size is the number of the next step; locked while a step chooses
 *	live/TOKEN.shared	has a byte once a step has said that it shares GPUs with another one
 *
 * N is the slot of the GPU.  Steps inside an exclusive step lock the GPU once more: their N is
 * higher by 128, or by 256 inside an exclusive step in another, and so on.
 *
 * The file of a GPU names the process that has locked it, so that a waiting step can wait for the
 * end of that process.  A step takes all its GPUs or none, and only one step of a lease chooses at
 * a time, so steps do not block each other.  A step that was stopped while it chooses keeps only
 * the GPUs that it has locked just then: after a second the others choose without the turn, and try
 * again from time to time.  Steps have no promised order.
 *
 * A step that is not exclusive locks nothing.  It only names itself in the files of its GPUs where
 * no other step runs, so that a step that gets the same GPU can say so.
 *
 * The kernel drops a lock with the process that holds it, so a crash leaves no GPU locked.  It
 * leaves the files, which live_fifo_sweep() removes after the end of the lease.  In the wrong place
 * of such a file, anything but a regular file is an error.
 */
#ifndef GPULEASE_STEP_LOCK_H
#define GPULEASE_STEP_LOCK_H

#include "gpuset.h"
#include "watch.h"

struct statedir;

enum { STEP_LOCK_BUSY = 1, STEP_LOCK_INSIDE };

struct step_lock {
	/* the caller sets these; ->dir and ->token must outlive the struct */
	const struct statedir *dir;
	const char *token; /* of the lease */
	unsigned
		level; /* how many exclusive steps are around this one, as far as known */
	uint8_t *slots; /* to choose from, in the order of preference */
	unsigned slot_count, wanted;

	/* what step_lock_try() has taken */
	unsigned number; /* of the step in its lease: 0, 1, 2 … */
	struct gpuset gpus;
	int fds[GPUSET_MAX]; /* close-on-exec; each holds the lock of one GPU */
	unsigned count;      /* of ->fds */
	bool meets_other;    /* a step that is not exclusive runs on one of the GPUs */

	struct watch watch;     /* what a step that has to wait waits for */
	int64_t stuck_since_ms; /* since when another step has the turn to choose; 0: none */
};

/*
 * Locks ->wanted of the GPUs, and numbers the step.  With ->wanted 0 it only numbers it.  Returns
 * 0, a negative errno, or one of these, after which no lock is held and it may be called again:
 *
 * STEP_LOCK_BUSY	too few are free, and ->watch reports when that may have changed
 * STEP_LOCK_INSIDE	ancestors of this process have some, so this step is inside theirs and would
 *			wait for itself; ->slots and ->level are now those of a step inside
 */
MUST_CHECK int step_lock_try(struct step_lock *lock);

/*
 * For a step that is not exclusive: names it in the files of the GPUs in @gpus, all of which are in
 * ->slots, and sets ->meets_other if another step runs on one of them.  A failure changes nothing.
 */
void step_lock_share(struct step_lock *lock, const struct gpuset *gpus);

/*
 * Whether another step runs on one of the GPUs, and no step of the lease has asked this before.
 */
bool step_lock_is_shared(const struct step_lock *lock);

/* Unlocks the GPUs and frees what @lock holds. */
void step_lock_release(struct step_lock *lock);

/* Whether @name is the name of such a file. */
bool step_lock_is_name(const char *name);

/* Removes the file @name in the folder @live_fd, unless it is locked. */
void step_lock_sweep(int live_fd, const char *name);

#endif
