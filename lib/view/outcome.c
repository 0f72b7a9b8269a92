#include <errno.h>

#include "clock.h"
#include "history.h"
#include "outcome.h"
#include "parse.h"

enum {
	/*
	 * How long after the end the history may still change: until the process that saw the
	 * end has recorded it, and its parent has reaped it.
	 */
	TELL_MS = 2000,
	/* the same if a recorder has to record the end: it waits for the parent and for a lock */
	EXACT_MS = 10000,
	FIRST_LOOK_MS = 10, /* then 20, 40 … */
	/* between two looks at what ends without an event: leftover processes, leases of shells */
	SILENT_MS = 10000,
	MOST_STATUS = 255,
	ATTEMPTS_PER_LOOK = 8,
};

void outcome_begin(struct outcome_look *look, struct queue *queue, struct snapshot *view,
	int64_t now_ms)
{
	*look = (struct outcome_look){
		.queue = queue, .view = view, .now_ms = now_ms, .wake_ms = INT64_MAX
	};
}

void outcome_look_again(struct outcome_look *look, int64_t since_ms)
{
	int64_t age_ms = look->now_ms - since_ms;

	look->wake_ms =
		min_i64(look->wake_ms, look->now_ms + max_i64(FIRST_LOOK_MS, age_ms));
}

int outcome_judge_life(struct outcome_look *look, const struct owner *owner,
	const struct command *runs, bool is_own, struct liveness **ret)
{
	struct liveness *life =
		liveness_set_judge_job(&look->view->lives, owner, runs, look->now_ms);

	*ret = life;
	if (!life)
		return -ENOMEM;
	if (!is_own || liveness_is_over(life))
		return 0;
	life->is_watched = true;
	if (liveness_is_dead(life))
		look->wake_ms = min_i64(look->wake_ms, look->now_ms + SILENT_MS);
	return 0;
}

/* --- tickets ----------------------------------------------------------------------- */

int outcome_find_job(
	struct ticket_file *file, uint64_t end, uint64_t number, uint64_t *ret_job)
{
	struct ticket ticket;
	int kind = number > 0 && number < end ? ticket_read(file, number, &ticket)
					      : TICKET_CONTROL;

	if (kind < 0)
		return kind;
	if (kind == TICKET_CONTROL || kind == TICKET_OTHER)
		return OUTCOME_NO_JOB;
	*ret_job = kind == TICKET_RECORD ? ticket_job(number, &ticket) : number;
	return 0;
}

void outcome_explain_no_job(uint64_t number, struct why *why)
{
	why_set(why, "job %llu is unknown; --status and --history list the jobs",
		(unsigned long long)number);
}

enum ticket_outcome { TICKET_IS_VOID = 1, TICKET_IS_UNREADABLE = 2 };

/*
 * Reads a ticket.  Returns 0, a ticket_outcome, or a negative errno.  A ticket of another boot
 * counts as void.
 */
static int read_current_ticket(struct queue *queue, uint64_t number, struct ticket *ret)
{
	int kind = number > 0 && number < queue->end
			   ? ticket_read(&queue->file, number, ret)
			   : TICKET_VOID;

	if (kind < 0)
		return kind;
	if (kind != TICKET_RECORD)
		return kind == TICKET_BROKEN ? TICKET_IS_UNREADABLE : TICKET_IS_VOID;
	return strcmp(ret->boot, queue->dir->boot) == 0 ? 0 : TICKET_IS_VOID;
}

/* Notes that @ticket, number @number, is the latest of @job. */
static void note_latest(struct outcome *job, uint64_t number, const struct ticket *ticket)
{
	job->runs = ticket->runs;
	job->is_gpuless = !ticket->request.gpus;
	if (job->has_owner && job->latest == number)
		return;
	job->has_owner = true;
	job->latest = number;
	job->attempt = ticket->attempt ? ticket->attempt : 1;
	job->owner = job->holder = ticket->owner;
}

/*
 * Reads the first ticket of the job and the latest one, which the first names, and notes the owner
 * of the latest.  Returns what read_current_ticket() returns for the first.
 */
static int read_owner(struct outcome *job, struct outcome_look *look)
{
	struct queue *queue = look->queue;
	struct ticket first, latest;
	int kind = TICKET_VOID, r = read_current_ticket(queue, job->job, &first);

	if (r == 0 && first.job && first.job < job->job) {
		job->job = first.job;
		r = read_current_ticket(queue, job->job, &first);
	}
	if (r != 0)
		return r;
	job->since_ms = first.since_ms;
	/* not queue_find(): it may have been appended since the queue was read */
	if (first.latest > job->job)
		kind = ticket_read(&queue->file, first.latest, &latest);
	if (kind == TICKET_RECORD && latest.job == job->job) {
		note_latest(job, first.latest, &latest);
		return 0;
	}
	note_latest(job, job->job, &first);
	/*
	 * A sweep may have removed the latest ticket and not the first: the pages differ.  Earlier
	 * versions did not write the number of the latest attempt into the first ticket.
	 */
	if (first.latest > job->job && kind == TICKET_VOID && !first.attempt)
		job->attempt = 2;
	return 0;
}

/* Whether to give up a ticket that cannot be read.  A ticket that is being written soon can. */
static int is_broken_for_good(struct outcome *job, struct outcome_look *look, bool is_own)
{
	if (!job->broken_ms)
		job->broken_ms = look->now_ms;
	if (look->now_ms - job->broken_ms >= TELL_MS)
		return 1;
	if (is_own)
		outcome_look_again(look, job->broken_ms);
	return 0;
}

/* --- whether ----------------------------------------------------------------------- */

const struct lease *outcome_find_lease(const struct snapshot *view, uint64_t job)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];

		if (lease->is_of_this_boot && !lease->is_over &&
			lease_job(&lease->lease) == job)
			return &lease->lease;
	}
	return NULL;
}

/*
 * Returns 1 if the owner of the latest ticket that is known is over, or is dead and its job was
 * cancelled or has no GPUs; 0; or -ENOMEM.
 */
static int owner_is_over(
	const struct outcome *job, struct outcome_look *look, bool is_own)
{
	struct liveness *life;
	uint32_t uid;
	int r = outcome_judge_life(look, &job->owner, &job->runs, is_own, &life);

	if (r < 0)
		return r;
	return liveness_is_over(life) ||
	       (liveness_is_dead(life) &&
		       (job->is_gpuless || queue_is_cancelled(look->queue, job->job,
						   job->owner.uid, &uid)));
}

/* Returns 1 if the owner of the latest ticket as it is now is over; 0; or a negative errno. */
static int latest_is_over(struct outcome *job, struct outcome_look *look, bool is_own)
{
	for (unsigned i = 0; i < ATTEMPTS_PER_LOOK; i++) {
		uint64_t latest = job->latest;
		uint32_t runs = job->runs.pid;
		int r = owner_is_over(job, look, is_own);

		if (r <= 0)
			return r;
		/* another attempt may have begun, or a command may have become known */
		r = read_owner(job, look);
		if (r < 0)
			return r;
		if (r != 0 || (job->latest == latest && job->runs.pid == runs))
			return 1;
	}
	if (is_own)
		outcome_look_again(look, look->now_ms);
	return 0;
}

/*
 * Returns 1 if the job is over, 0, or a negative errno.  A lease decides before the tickets do: the
 * ticket of a job that runs may be damaged or void.
 */
static int job_is_over(struct outcome *job, struct outcome_look *look, bool is_own)
{
	int owned = job->has_owner ? 0 : read_owner(job, look);
	const struct lease *lease = outcome_find_lease(look->view, job->job);
	struct liveness *life;

	if (owned < 0)
		return owned;
	/* a lease older than the job is of an earlier ticket file, which had the same number */
	if (lease && (owned != 0 || lease->since_ms >= job->since_ms)) {
		job->holder = lease->owner;
		if (lease->is_shell && is_own)
			look->wake_ms = min_i64(look->wake_ms, look->now_ms + SILENT_MS);
		return outcome_judge_life(
			look, &job->holder, &lease->runs, is_own, &life);
	}
	/* without a lease the ticket decides */
	if (owned == TICKET_IS_UNREADABLE)
		return is_broken_for_good(job, look, is_own);
	return owned == TICKET_IS_VOID ? 1 : latest_is_over(job, look, is_own);
}

int outcome_judge(struct outcome *job, struct outcome_look *look, bool is_own)
{
	int r;

	if (job->over_ms)
		return 1;
	r = job_is_over(job, look, is_own);
	if (r > 0)
		job->over_ms = look->now_ms;
	return r;
}

int outcome_judge_start(struct outcome *job, struct outcome_look *look, bool is_own)
{
	struct ticket ticket = { .state = TICKET_WAITING };
	int kind = ticket_read(
		&look->queue->file, job->has_owner ? job->latest : job->job, &ticket);

	/*
	 * The job has a later ticket: for its next attempt, or for another place in the queue.  The
	 * sweep may have removed the one before.
	 */
	if (kind == TICKET_VOID ||
		(kind == TICKET_RECORD && ticket.state == TICKET_LEFT)) {
		kind = read_owner(job, look);
		if (kind >= 0)
			kind = ticket_read(&look->queue->file, job->latest, &ticket);
	}
	if (kind < 0)
		return kind;
	/* the lease also tells if the ticket is damaged */
	if (job->attempt > 1 || ticket.state != TICKET_WAITING ||
		outcome_find_lease(look->view, job->job))
		return 1;
	/* the longer the caller waits, the later it looks again */
	if (is_own)
		outcome_look_again(
			look, max_i64(job->since_ms, look->now_ms - SILENT_MS));
	return 0;
}

/* --- how --------------------------------------------------------------------------- */

/* Returns the lease of the job's latest ticket if its record is still there, or NULL. */
static const struct lease *find_dead_lease(
	const struct outcome *job, const struct snapshot *view)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];

		if (lease->is_of_this_boot && lease_job(&lease->lease) == job->job &&
			lease->lease.since_ms >= job->since_ms &&
			lease->lease.ticket == job->latest)
			return &lease->lease;
	}
	return NULL;
}

/*
 * Returns the exit status of @job by the history, or -1.  Sets *@ret_patience_ms: how long after
 * the end the history may still change.
 */
static int status_in_history(const struct outcome *job, const struct outcome_look *look,
	int64_t *ret_patience_ms)
{
	const struct lease *lease = find_dead_lease(job, look->view);
	int dirfd = look->queue->dir->fd, r;
	struct history_end end;
	uint64_t status;

	*ret_patience_ms = TELL_MS;
	if (lease && lease->recorded_by[0] && !lease->is_recorded)
		*ret_patience_ms = EXACT_MS;
	r = job->has_owner ? history_find_of_boot(dirfd, job->job, job->since_ms, &end)
			   : history_find(dirfd, job->job, 0, &end);
	/* the status of an earlier attempt is not the job's */
	if (r != 0 || (job->has_owner && (end.attempt ? end.attempt : 1) < job->attempt))
		return -1;
	/* an exact line will follow, unless the supervisor that would append it was killed */
	if (end.is_provisional && strcmp(end.how, HISTORY_LOST) != 0)
		*ret_patience_ms = EXACT_MS;
	if (!end.status[0] || parse_u64(end.status, MOST_STATUS, &status, NULL) < 0)
		return -1;
	return (int)status;
}

int outcome_learn_status(struct outcome *job, struct outcome_look *look, bool is_own)
{
	int64_t patience_ms = TELL_MS;
	struct liveness *life;

	if (job->is_settled)
		return 0;
	if (job->has_owner) {
		int r = outcome_judge_life(look, &job->holder, &job->runs, false, &life);

		if (r < 0)
			return r;
		/* known if this process has watched the owner until it ended */
		job->status = life->status;
	}
	if (job->status < 0)
		job->status = status_in_history(job, look, &patience_ms);
	job->is_settled = job->status >= 0 || look->now_ms - job->over_ms >= patience_ms;
	if (!job->is_settled && is_own)
		outcome_look_again(look, job->over_ms);
	return 0;
}

/* --- watching ---------------------------------------------------------------------- */

int outcome_watch(const struct outcome_look *look, struct watch *watch)
{
	watch_until(watch, look->wake_ms);
	return liveness_set_watch(&look->view->lives, watch, look->now_ms);
}
