/*
 * Whether and how a job has ended: for tickets that come after the job, for --wait-for, and for
 * programs that follow its log.
 *
 * A job is followed by its latest ticket.  The job has ended when that ticket is void or of another
 * boot.  It has also ended when the ticket's owner is dead, no process that it left holds its FIFO,
 * and the job has no lease.  A supervisor that tries again first appends the new ticket and names
 * it in the first ticket, and then gives the old lease back.  So a process that finds the old
 * ticket over reads the first ticket again.  Between two attempts the job has not ended.
 *
 * The cause of the end decides, and then the status (end_cause.h).  The cause is in the history, if
 * the end was recorded there, or, if a user has cancelled the job, in the record of its lease until
 * another lease replaces it; only the latest attempt counts.  The status is that of the owner, for
 * a process that has watched it (since Linux 6.15); otherwise it is in the history, too.
 *
 * Nothing is written: a crash leaves nothing.
 */
#ifndef GPULEASE_OUTCOME_H
#define GPULEASE_OUTCOME_H

#include "end_cause.h"
#include "queue.h"
#include "snapshot.h"
#include "watch.h"

/* A job that this process follows. */
struct outcome {
	/* by which it is followed: its id, or the number of one of its tickets */
	uint64_t number;
	uint64_t job;    /* its id, once it was judged */
	bool is_used;    /* free for the caller */
	bool is_settled; /* it is over, and no more will be learned about how */
	int64_t over_ms; /* since when it is over; 0: it is not */
	/* 0 only if it has done its work (end_cause.h); 128 + a signal's number; -1: not known */
	int status;
	enum end_cause cause; /* once ->is_settled */
	int64_t broken_ms;    /* since when its ticket cannot be read; 0: it can */
	bool has_owner;       /* the fields below were read */
	bool is_gpuless;      /* it asks for 0 GPUs: it is over with its process */
	int64_t since_ms;     /* of its first ticket */
	int64_t limit_ms; /* of its latest ticket, if a watchdog ends it at its limit; else 0 */
	uint64_t latest;     /* the number of its latest ticket */
	uint32_t attempt;    /* the number of its latest attempt, 1, 2 …, at least */
	struct owner owner;  /* of the latest ticket */
	struct command runs; /* the command of that owner, as far as it was read */
	/* its status is the job's status: the owner of its lease when last seen, else as ->owner */
	struct owner holder;
};

/* Begins to follow the job of that ticket; there is nothing to release. */
#define OUTCOME_OF(ticket_number) \
	((struct outcome){        \
		.number = (ticket_number), .job = (ticket_number), .status = -1 })

/*
 * One look at jobs.  The caller has called queue_begin() and snapshot_read(), and makes the look
 * between liveness_set_begin() and liveness_set_end().
 */
struct outcome_look {
	struct queue *queue;
	struct snapshot *view;
	int64_t now_ms; /* CLOCK_BOOTTIME */
	int64_t wake_ms; /* when to look again at the latest; INT64_MAX: an event will tell */
};

/* Begins a look; the caller keeps @queue and @view. */
void outcome_begin(struct outcome_look *look, struct queue *queue, struct snapshot *view,
	int64_t now_ms);

enum outcome_result { OUTCOME_NO_JOB = 1 };

/*
 * Finds the job that @number means, in a file of @end records, and sets *@ret_job to its id.
 * @number can be that of any of the job's tickets; if the ticket is void by now, the id is @number.
 * Returns 0; OUTCOME_NO_JOB if no job has that number (it is a control, or not used yet); or a
 * negative errno.
 */
MUST_CHECK int outcome_find_job(
	struct ticket_file *file, uint64_t end, uint64_t number, uint64_t *ret_job);

/* Sets @why to the message for OUTCOME_NO_JOB: the one wording for an id without a job. */
void outcome_explain_no_job(uint64_t number, struct why *why);

/*
 * Judges whether the job is over.  Returns 1 if it is, for good; 0 if it waits or runs; or a
 * negative errno.  If @is_own, the lives that its end depends on are watched (outcome_watch(), or
 * the broker's wait), and ->wake_ms is set if no event will tell.
 */
MUST_CHECK int outcome_judge(struct outcome *job, struct outcome_look *look, bool is_own);

/*
 * Judges whether a job that is not over has started, also if it waits for its next attempt by now.
 * Returns 1, 0, or a negative errno.  No event tells of a start, so ->wake_ms is set if @is_own.
 */
MUST_CHECK int outcome_judge_start(
	struct outcome *job, struct outcome_look *look, bool is_own);

/* Returns the lease of job @job that is not over, or NULL. */
const struct lease *outcome_find_lease(const struct snapshot *view, uint64_t job);

/*
 * Finds out how a job that is over ended: sets ->status, ->cause and ->is_settled.  The process
 * that saw the end may need a moment to record it.  So while ->is_settled is false, the caller
 * calls this again at ->wake_ms, which is set if @is_own.  Returns 0 or a negative errno.
 */
MUST_CHECK int outcome_learn_status(
	struct outcome *job, struct outcome_look *look, bool is_own);

/*
 * Judges the life of @owner, which has started @runs.  Sets *@ret, valid until the next call.
 * Watches the life if @is_own and it is not over.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int outcome_judge_life(struct outcome_look *look, const struct owner *owner,
	const struct command *runs, bool is_own, struct liveness **ret);

/* Makes the look repeat after 2 ms, 4, 8 …: a state since @since_ms may still change. */
void outcome_look_again(struct outcome_look *look, int64_t since_ms);

/*
 * Adds the events that the jobs of the look depend on, and the time of the next look, to @watch.
 * The caller has begun @watch.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int outcome_watch(const struct outcome_look *look, struct watch *watch);

#endif
