/*
 * Decides what follows an attempt of a supervised job.  Pure.
 *
 * - The command failed: the job is retried as often as --retries says, after 5 s, 10 s, 20 s …
 *   The configuration has the first and the longest delay.  Each delay varies by a quarter at
 *   random, so that jobs that failed together do not return together.
 * - The command failed, and its output says that GPU memory ran out: --oom-retries are used first.
 *   The next attempt has no delay, and declares 1.25 times the memory that the job used or
 *   declared, whichever is more, but at most what a card has.  If it cannot declare more, it has
 *   failed as above.
 * - The time limit ended it: it is requeued if --on-limit and --max-requeues allow it.
 * - A job of higher priority, or a window, preempted it: it is always requeued.
 * - The user asked for it by --requeue: it is always requeued, whatever else is true of its end,
 *   unless it was cancelled.
 * - The command exited with the status of --done-status: the job is done in any case.
 * - The job was cancelled, or ended from the keyboard (INT, QUIT, or the statuses that shells make
 *   of them): it is not retried.
 */
#ifndef GPULEASE_RETRY_POLICY_H
#define GPULEASE_RETRY_POLICY_H

#include "end_cause.h"
#include "lease_use.h"
#include "settings.h"

/* How an attempt has ended. */
struct attempt_end {
	enum end_cause cause; /* CAUSE_OOM never: ->is_oom */
	uint32_t by;          /* CAUSE_CANCEL: the uid that cancelled it */
	uint64_t
		preempted_by; /* CAUSE_PREEMPT: the job that gets the GPUs; 0: a window */
	int wait_status;      /* of the command, from waitpid(2) */
	bool was_told; /* the supervisor got TERM, HUP, INT or QUIT before the end */
	bool is_cancelled_late; /* it was cancelled once the command had ended by itself */
	bool is_done;      /* the command has exited with the status of --done-status */
	bool is_oom;       /* its output says that GPU memory ran out */
	uint64_t peak_mib; /* the most memory that it was seen to use on one GPU */
	int64_t ran_ms;
	struct lease_use use; /* of its GPUs */
};

/* What the job may still do, and what it has done. */
struct retry_policy {
	unsigned retries, oom_retries, requeues; /* left */
	unsigned failures;                       /* so far */
	enum on_limit on_limit;
	int64_t delay_ms, delay_max_ms;
	bool is_sharing;       /* other jobs use its GPUs, too */
	uint64_t vram_mib;     /* declared; 0: none */
	uint64_t vram_max_mib; /* the most that can be declared here; 0: not known */
};

enum retry_next {
	RETRY_NEXT_NOTHING,
	RETRY_NEXT_RETRY,   /* it failed */
	RETRY_NEXT_OOM,     /* it ran out of memory: ->vram_mib has been raised */
	RETRY_NEXT_REQUEUE, /* it was ended by its limit, preempted, or its user wants it */
};

/*
 * Returns what follows @end, and counts it in @care.  Sets *@ret_delay_ms to the delay before the
 * next attempt; @chance is a random number.
 */
enum retry_next retry_policy_apply(struct retry_policy *care,
	const struct attempt_end *end, uint32_t chance, int64_t *ret_delay_ms);

/* Returns the exit status after @end, as its cause says (end_cause_status()). */
int attempt_exit_status(const struct attempt_end *end);

#endif
