/*
 * The last answer of squeue, which all processes of a user share, as a file in the folder of the
 * cluster (engine_state.h).
 *
 * A process that needs a newer answer takes a lock, and asks.  The lock is a flock(2) on
 * poll.lock0, whose modification time is the time at which it was taken.  If its holder is stopped,
 * the others pass it over after some seconds, and take poll.lock1, and so on; after the last one
 * they ask without a lock.  The answer is the file poll.answer, which is replaced as a whole.
 *
 * If a holder dies, the kernel frees its lock, and the next process asks.
 */
#ifndef GPULEASE_POLL_SHARE_H
#define GPULEASE_POLL_SHARE_H

#include "base.h"

/* One answer. */
struct poll_answer {
	/* CLOCK_REALTIME: when squeue was started; of an answer that did not come, its end */
	int64_t at_ms;
	bool is_silent; /* the controller did not answer */
	char *text;     /* what squeue has printed; inside ->memory */
	char *memory;   /* the caller frees it */
};

enum poll_share_outcome {
	POLL_SHARE_NONE = 1, /* there is no answer */
	POLL_SHARE_BUSY,     /* another process asks */
};

enum { POLL_SHARE_STOPPED_MS = 15 * 1000 }; /* longer than a question can take */

/* Reads the last answer.  Returns 0 or POLL_SHARE_NONE. */
MUST_CHECK int poll_share_read(const char *folder, struct poll_answer *ret);

/*
 * Replaces the answer, unless it is newer than @answer.  A failure is ignored: the other processes
 * then ask themselves.
 */
void poll_share_write(const char *folder, const struct poll_answer *answer);

/*
 * Takes a lock without waiting.  Returns 0 and sets *@ret_fd, which the caller closes, and which
 * may be -1: no lock can be had; or POLL_SHARE_BUSY.
 */
MUST_CHECK int poll_share_lock(const char *folder, int64_t now_real_ms, int *ret_fd);

#endif
