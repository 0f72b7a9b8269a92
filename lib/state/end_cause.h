/*
 * Why a job, or an attempt of it, has ended, and what that means for its exit status: the one place
 * for this rule.  Pure.
 *
 * The cause decides.  A job that was cancelled, reached its time limit, did not use its GPUs, was
 * sent back into the queue or was lost has not done its work, whatever its command has exited
 * with: a handler of TERM usually saves and exits with 0.  So none of them counts as a success.
 */
#ifndef GPULEASE_END_CAUSE_H
#define GPULEASE_END_CAUSE_H

#include "base.h"

enum end_cause {
	CAUSE_ITSELF, /* or not known */
	CAUSE_LIMIT,
	CAUSE_CANCEL,
	CAUSE_PREEMPT,  /* sent back for a job of higher priority, or by a window */
	CAUSE_UNUSED,   /* it did not use its GPUs (use_rule.h) */
	CAUSE_REQUEUE,  /* its user wanted it back in the queue */
	CAUSE_OOM,      /* by itself; its output says that GPU memory ran out */
	CAUSE_REBOOT,   /* the machine went down */
	CAUSE_LOST,     /* its supervisor was killed */
	CAUSE_LINGERED, /* by itself; processes that it has left were given up */
	END_CAUSES
};

/* The words of the causes in records, `how=`. */
#define HISTORY_LIMIT "limit"
#define HISTORY_CANCEL "cancel"
#define HISTORY_PREEMPT "preempt"
#define HISTORY_UNUSED "unused"
#define HISTORY_REQUEUE "requeue"
#define HISTORY_OOM "oom"
#define HISTORY_REBOOT "reboot"
#define HISTORY_LOST "lost"
#define HISTORY_LINGERED "lingered"

/* What became of a job. */
enum end_state {
	END_UNKNOWN, /* "ended": no process saw how */
	END_FINISHED,
	END_FAILED,
	END_CANCELLED,
	END_TIMED_OUT,
	END_OOM, /* failed, and its output says that GPU memory ran out */
	END_PREEMPTED, /* sent back into the queue for a job of higher priority, or by a window */
	END_REQUEUED, /* put back into the queue by its user */
	END_LOST,     /* the machine went down, or the supervisor was killed */
	END_STATES,
	/* events */
	END_PAUSED = END_STATES,
	END_RESUMED,
	END_WINDOW_SET,
	END_WINDOW_REMOVED,
	END_WORDS
};

enum { STATUS_UNKNOWN = -1 };

/* Returns the word of the cause: HISTORY_CANCEL …; "" for CAUSE_ITSELF. */
const char *end_cause_word(enum end_cause cause);

/* Returns the cause of that word; CAUSE_ITSELF for one of a later version. */
enum end_cause end_cause_of_word(const char *word);

/*
 * Returns the exit status of a job that has ended because of @cause; @status is that of its
 * command, or STATUS_UNKNOWN.  Only 0 is a success.  Returns STATUS_UNKNOWN if nobody can know it.
 */
int end_cause_status(enum end_cause cause, int status);

/* Returns what became of such a job; @status as above. */
enum end_state end_cause_state(enum end_cause cause, int status);

#endif
