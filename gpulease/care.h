/*
 * What comes after an attempt of a job that is looked after.  Pure.
 *
 * A command that fails by itself is tried again where --retries allows it, after 5 s, 10 s,
 * 20 s … (the configuration says how long at first and at most), each a quarter more or less by
 * chance, so that those who failed together do not come back together.  One whose output says
 * that GPU memory ran out uses --oom-retries first, declares 1.25 times what it used or had
 * declared, whichever is more, as far as a card has so much, and waits for nothing; where there
 * is no more to be had it has failed like any other.  At its time limit it goes back into the
 * queue where --on-limit says so, and --max-requeues allows it; sent back by one of higher
 * priority it always does.  If the command exits with the status of --done-status the job is done
 * in any case.  A job that is cancelled, or ended from the keyboard (INT, QUIT, or the statuses
 * that shells make of them), is not tried again.
 */
#ifndef GPULEASE_CARE_H
#define GPULEASE_CARE_H

#include "cli.h"

enum end_cause { CAUSE_ITSELF, CAUSE_LIMIT, CAUSE_CANCEL, CAUSE_PREEMPT };

/* How an attempt has ended. */
struct attempt_end {
	enum end_cause cause;
	uint32_t by;       /* CAUSE_CANCEL: uid of who wanted it */
	int wait_status;   /* of the command, as waitpid(2) has it */
	bool was_told;     /* to end, by TERM, HUP, INT or QUIT, before it did */
	bool is_done;      /* the command has exited with the status of --done-status */
	bool is_oom;       /* its output says so */
	uint64_t peak_mib; /* the most that was seen of it on a GPU */
	int64_t ran_ms;
};

/* What may be done for the job, and what has been. */
struct care {
	unsigned retries, oom_retries, requeues; /* left */
	unsigned failures;                       /* so far */
	enum on_limit on_limit;
	int64_t delay_ms, delay_max_ms;
	bool is_sharing;       /* it has not got its GPUs alone */
	uint64_t vram_mib;     /* declared, 0: nothing */
	uint64_t vram_max_mib; /* the most that can be declared here, 0: not known */
};

enum care_next {
	CARE_DONE,
	CARE_RETRY,     /* it failed */
	CARE_RETRY_OOM, /* likewise, for lack of memory: @care->vram_mib is more now */
	CARE_REQUEUE,   /* its time was over, or another comes first */
};

/*
 * What comes after @end; counts it in @care.  *@ret_delay_ms is how long to wait before, which
 * @chance (any number) decides in part.
 */
enum care_next care_after(struct care *care, const struct attempt_end *end,
	uint32_t chance, int64_t *ret_delay_ms);

/* How what was seen of a job compares with what it has declared. */
enum use_verdict { USE_WITHIN, USE_OVER, USE_UNDER };

/* Over or under @declared_mib by more than @tolerance_percent of it, or within. */
enum use_verdict care_compare(
	uint64_t declared_mib, uint64_t seen_mib, unsigned tolerance_percent);

/* The exit status of gpulease after @end: 124 at the limit, 128 + a signal's number. */
int care_exit_status(const struct attempt_end *end);

#endif
