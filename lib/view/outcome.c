#include <errno.h>

#include "clock.h"
#include "history.h"
#include "outcome.h"

enum {
	/*
	 * How long after the end the history may still change: until the process that saw the
	 * end has recorded it, and its parent has reaped it.
	 */
	TELL_MS = 2000,
	/* the same if a recorder has to record the end: it waits for the parent and for a lock */
	EXACT_MS = 10000,
	FIRST_LOOK_MS = 2, /* then 4, 8 … */
	/* between two looks at what ends without an event: leftover processes, leases of shells */
	SILENT_MS = 10000,
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
	job->limit_ms = ticket->request.is_supervised ? 0 : ticket->request.limit_ms;
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

/* What is recorded of an end. */
struct record_of_end {
	enum end_cause cause;
	int status;       /* of the command; STATUS_UNKNOWN */
	int64_t cause_ms; /* how long after the end ->cause may still change; 0: it is final */
	int64_t patience_ms; /* how long after the end the status may still become known */
};

/*
 * Reads the lease of the job's latest ticket as it is now, if its record is still there: the
 * snapshot may be older than the end.  Returns whether it is.
 */
static bool read_dead_lease(
	const struct outcome *job, struct snapshot *view, struct lease *ret)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct lease *lease = &view->leases[i].lease;
		int slot = gpuset_next(&lease->gpus, 0);
		struct lease_file file;
		unsigned at;

		if (lease_job(lease) != job->job || lease->since_ms < job->since_ms ||
			(job->has_owner && (lease->ticket != job->latest ||
						   !view->leases[i].is_of_this_boot)))
			continue;
		*ret = *lease;
		if (slot < 0 || (unsigned)slot >= view->known ||
			view->gpus[slot].file.fd < 0)
			return true;
		file = view->gpus[slot].file;
		return lease_find(&file, lease->owner.token, ret, &at) == 0 && at;
	}
	return false;
}

/* Reads the line of the job's latest attempt in the history.  Returns whether there is one. */
static bool read_line(
	const struct outcome *job, const struct statedir *dir, struct history_end *ret)
{
	int r = job->has_owner ? history_find_of_boot(dir, job->job, job->since_ms, ret)
			       : history_find(dir->fd, job->job, 0, ret);

	return r == 0 &&
	       (!job->has_owner || (ret->attempt ? ret->attempt : 1) >= job->attempt);
}

/* What the line says.  After a provisional line an exact one will follow. */
static void record_of_line(const struct history_end *line, struct record_of_end *ret)
{
	ret->cause = history_cause(line);
	ret->status = history_command_status(line);
	/* the supervisor that would append the exact line was killed */
	if (!line->is_provisional || ret->cause == CAUSE_LOST)
		return;
	ret->patience_ms = EXACT_MS;
	if (ret->cause != CAUSE_CANCEL)
		ret->cause_ms = EXACT_MS;
}

/*
 * There is no line: the record of the lease, or the cancel request, says what may come.  A watchdog
 * appends a line also after a job has ended by itself.
 */
static void record_of_lease(const struct outcome *job, const struct outcome_look *look,
	const struct lease *lease, bool is_orphaned, struct record_of_end *ret)
{
	int64_t begun_ms = lease ? lease->since_ms : job->since_ms;
	int64_t limit_ms = lease ? lease->limit_ms : job->limit_ms;
	bool has_watchdog = lease && !lease->is_recorded &&
			    strcmp(lease->recorded_by, RECORDER_WATCHDOG) == 0;
	uint32_t uid;

	if (lease && lease->recorded_by[0] && !lease->is_recorded)
		ret->patience_ms = EXACT_MS;
	if (lease && strcmp(lease->boot, look->queue->dir->boot) != 0) {
		ret->cause = CAUSE_REBOOT;
	} else if (lease && lease->cancelled_by[0]) {
		ret->cause = CAUSE_CANCEL;
	} else if (!lease && job->has_owner &&
		   queue_is_cancelled(look->queue, job->job, job->owner.uid, &uid)) {
		ret->cause = CAUSE_CANCEL;
		ret->cause_ms = TELL_MS;
	} else if (is_orphaned) {
		ret->cause = CAUSE_LOST;
	} else if (lease ? has_watchdog : limit_ms != 0) {
		ret->cause_ms = ret->patience_ms = EXACT_MS;
		/* the watchdog was killed, or cannot write */
		if (limit_ms && job->over_ms >= begun_ms + limit_ms)
			ret->cause = CAUSE_LIMIT;
	}
}

/* Finds what is recorded of the end, and for how long more may come. */
static void read_record_of_end(const struct outcome *job, struct outcome_look *look,
	bool is_orphaned, struct record_of_end *ret)
{
	struct lease lease;
	bool has_lease = read_dead_lease(job, look->view, &lease);
	struct history_end line;
	/* the line comes before the lease is replaced, so it is read after the lease */
	bool has_line = read_line(job, look->queue->dir, &line);

	*ret = (struct record_of_end){ .status = STATUS_UNKNOWN, .patience_ms = TELL_MS };
	if (has_line)
		record_of_line(&line, ret);
	else
		record_of_lease(job, look, has_lease ? &lease : NULL, is_orphaned, ret);
}

int outcome_learn_status(struct outcome *job, struct outcome_look *look, bool is_own)
{
	int64_t age_ms = look->now_ms - job->over_ms;
	struct record_of_end record;
	int status = STATUS_UNKNOWN;
	bool is_orphaned = false;
	struct liveness *life;

	if (job->is_settled)
		return 0;
	if (job->has_owner) {
		int r = outcome_judge_life(look, &job->holder, &job->runs, false, &life);

		if (r < 0)
			return r;
		/* known if this process has watched the owner until it ended */
		status = life->status;
		is_orphaned = life->is_orphaned;
	}
	read_record_of_end(job, look, is_orphaned, &record);
	if (status < 0)
		status = record.status;
	job->is_settled = age_ms >= record.cause_ms &&
			  (status >= 0 || age_ms >= record.patience_ms);
	if (job->is_settled) {
		job->cause = record.cause;
		job->status = end_cause_status(record.cause, status);
	} else if (is_own) {
		outcome_look_again(look, job->over_ms);
		/* no longer than that more may come */
		look->wake_ms = min_i64(look->wake_ms,
			job->over_ms + max_i64(record.cause_ms, record.patience_ms));
	}
	return 0;
}

/* --- watching ---------------------------------------------------------------------- */

int outcome_watch(const struct outcome_look *look, struct watch *watch)
{
	watch_until(watch, look->wake_ms);
	return liveness_set_watch(&look->view->lives, watch, look->now_ms);
}
