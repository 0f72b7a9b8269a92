/*
 * Whether and how a job has ended, for those who wait for that: jobs that are to come after it,
 * --wait-for, and who follows its log.
 *
 * A job is followed by its latest ticket.  It has ended when that ticket is void or of another
 * boot; or when its owner is dead and nobody it left behind holds its FIFO, and no lease of the
 * job is left.  A supervisor that tries again has appended the new ticket and named it in the
 * first before it gives the old lease back: so whoever finds the old one over reads the first
 * again.  Between two attempts the job has not ended.
 *
 * How it ended is known to who watched its owner (from Linux 6.15 on), whose status is the job's,
 * and else to the history, where somebody told it there: of the latest attempt alone.
 *
 * Nothing is written: a crash leaves nothing.
 */
#ifndef GPULEASE_OUTCOME_H
#define GPULEASE_OUTCOME_H

#include "queue.h"
#include "snapshot.h"
#include "watch.h"

/* A job that somebody follows. */
struct outcome {
	uint64_t
		number; /* by which it is followed: its id, or that of one of its tickets */
	uint64_t job;   /* its id, once it was judged */
	bool is_used;   /* for the caller */
	bool is_settled;     /* over, and no more will be known of how */
	int64_t over_ms;     /* since when it is over; 0: it is not */
	int status;          /* 128 + a signal's number; -1: not known (yet) */
	int64_t broken_ms;   /* since when its ticket cannot be read; 0: it can */
	bool has_owner;      /* what follows was read */
	int64_t since_ms;    /* of its first ticket */
	uint64_t latest;     /* the number of its latest ticket */
	uint32_t attempt;    /* its number, 1, 2 …, at least */
	struct owner owner;  /* of that ticket */
	struct command runs; /* the command of that owner, as far as it was read */
	struct owner
		holder; /* of its lease, as seen last, else as above: whose status counts */
};

/* Begins to follow; there is nothing to release. */
#define OUTCOME_OF(ticket_number) \
	((struct outcome){        \
		.number = (ticket_number), .job = (ticket_number), .status = -1 })

/* One look at jobs: after queue_begin(), snapshot_read() and between lives_begin() and _end(). */
struct outcome_look {
	struct queue *queue;
	struct snapshot *view;
	int64_t now_ms;  /* CLOCK_BOOTTIME */
	int64_t wake_ms; /* when to look again at the latest; INT64_MAX: an event tells */
};

/* Begins a look; the caller keeps @queue and @view. */
void outcome_begin(struct outcome_look *look, struct queue *queue, struct snapshot *view,
	int64_t now_ms);

/*
 * Which job is meant by @number, which may be that of any of its tickets, in a file of @end
 * records: *@ret_job is its id.  0; OUTCOME_NO_JOB: there is none with that number (a control,
 * or not yet taken); or a negative errno.  Of a ticket that is void by now the number is the id.
 */
enum { OUTCOME_NO_JOB = 1 };
MUST_CHECK int outcome_find_job(
	struct ticket_file *file, uint64_t end, uint64_t number, uint64_t *ret_job);

/*
 * Judges whether the job is over.  1: it is, and stays so; 0: it waits, or runs; or a negative
 * errno.  With @is_own the lives that its end depends on are watched (outcome_watch(), or the
 * broker's wait), and ->wake_ms is set where no event tells.
 */
MUST_CHECK int outcome_judge(struct outcome *job, struct outcome_look *look, bool is_own);

/* The lease of job @job that is not over, NULL: it has none. */
const struct lease *outcome_find_lease(const struct snapshot *view, uint64_t job);

/*
 * Finds out how the job ended, which is over: sets ->status and ->is_settled.  Who has seen the
 * end may need a moment to tell: as long as it is not settled come back at ->wake_ms, which is
 * set with @is_own.  0 or a negative errno.
 */
MUST_CHECK int outcome_learn_status(
	struct outcome *job, struct outcome_look *look, bool is_own);

/*
 * Judges the life of @owner, which has started @runs: *@ret, good until the next call.  Watches it
 * if @is_own and it is not over.  0 or -ENOMEM.
 */
MUST_CHECK int outcome_judge_life(struct outcome_look *look, const struct owner *owner,
	const struct command *runs, bool is_own, struct life **ret);

/* Comes back after 10 ms, 20, 40 … while something since @since_ms may still change. */
void outcome_look_again(struct outcome_look *look, int64_t since_ms);

/*
 * Adds to @watch, which was begun, what the jobs of the look depend on, and when to look again.
 * 0 or -ENOMEM.
 */
MUST_CHECK int outcome_watch(const struct outcome_look *look, struct watch *watch);

#endif
