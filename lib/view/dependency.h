/*
 * Whether a ticket must wait for something other than GPUs.  That can be jobs that have to end or
 * to start first, named by their ids (after, after_start, after_ok) or by their user and name
 * (is_singleton); or a time before which an attempt must not start.  Every waiter judges all
 * tickets, each for itself.  A ticket that is held back takes no GPUs and is in no other ticket's
 * way.
 *
 * There are no wait cycles.  Jobs named by their ids are older than the ticket.  By its name, a
 * ticket waits only for running jobs and for tickets before it in the queue that do not wait for
 * any job by its id.
 *
 * outcome.h finds out whether and how a job has ended.  Nothing is written: a crash leaves nothing.
 */
#ifndef GPULEASE_DEPENDENCY_H
#define GPULEASE_DEPENDENCY_H

#include "policy.h"
#include "singleton.h"

/* The first ticket in the queue of one user and name, and its job. */
struct dependency_name {
	uint64_t hash, number, job;
	uint32_t uid, next; /* next item of the same list, 1 + its index; 0: none */
};

enum { DEPENDENCY_LISTS = 256 };

/* What is kept of the jobs from turn to turn, and of the names during a turn.  Zeroed: nothing. */
struct dependency_book {
	/* ->wake_ms: when to judge the caller's own ticket again */
	struct outcome_look look;
	struct outcome *jobs; /* ascending by id */
	size_t job_count, job_room;
	struct dependency_name *names;
	size_t name_count, name_room;
	uint32_t lists[DEPENDENCY_LISTS];
	struct singletons singletons;
};

/* Why one ticket is held back. */
struct dependency_verdict {
	enum dependency hold;
	/*
	 * the ticket waits for this job, or its outcome keeps the ticket from starting; 0: none.
	 * With DEPENDENCY_UNTIL as in struct plan_row
	 */
	uint64_t by;
	int status;           /* DEPENDENCY_FAILED: the exit status of that job */
	enum end_cause cause; /* DEPENDENCY_FAILED and _UNRECORDED: why it has ended */
	int64_t until_ms;     /* DEPENDENCY_UNTIL: CLOCK_BOOTTIME, or TICKET_HELD */
};

/*
 * Called before joining: checks that the jobs that @request waits for have existed.  Returns 0;
 * -ENOENT if one has not, or -EINVAL if the text is no list of ids, both with the reason in @why;
 * or another negative errno.
 */
MUST_CHECK int dependency_check(
	struct queue *queue, const struct request *request, struct why *why);

/*
 * Begins a turn.  The caller has called queue_begin(), snapshot_read() and liveness_set_begin()
 * before.  Forgets jobs that no ticket of the last turn depended on.
 */
void dependency_begin(struct dependency_book *book, struct queue *queue,
	struct snapshot *view, int64_t now_ms);

/* Goes back to the first ticket in the same turn; forgets no job. */
void dependency_again(struct dependency_book *book);

/* What dependency_judge() returns if the ticket can never start. */
enum dependency_outcome { DEPENDENCY_FAILED = 1, DEPENDENCY_UNRECORDED = 2 };

/*
 * Judges the next ticket in the queue.  The caller leaves out tickets that are dead or passed over.
 * @row must come from the file, also for the caller's own ticket: a record cuts long names to one
 * length, and only then are equal names equal.
 *
 * If @is_own, the processes that the ticket waits for are watched.  So the caller judges its own
 * ticket in every turn, as the last one, and before liveness_set_end().
 *
 * Returns 0 with @ret; DEPENDENCY_FAILED if the ticket can never start because job ->by ended with
 * another status than 0; DEPENDENCY_UNRECORDED if it can never start because no record says how job
 * ->by ended; or a negative errno.  With the two outcomes @ret says DEPENDENCY_STATUS, because the
 * ticket waits until its owner leaves the queue.
 */
MUST_CHECK int dependency_judge(struct dependency_book *book, const struct queue_row *row,
	bool is_own, struct dependency_verdict *ret);

/* Returns the row of @ticket, number @number, for the plan, with the verdict @held.  Pure. */
struct plan_row dependency_row(uint64_t number, const struct ticket *ticket,
	const struct dependency_verdict *held);

void dependency_release(struct dependency_book *book);

#endif
