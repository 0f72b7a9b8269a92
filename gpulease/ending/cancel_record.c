#include <signal.h>

#include "cancel_record.h"
#include "clock.h"
#include "end_record.h"
#include "privacy.h"

/* Returns the status of a supervisor's command, which this process has ended. */
static int command_status(const struct cancelled *job)
{
	return 128 + (job->is_killed ? SIGKILL : SIGTERM);
}

/* --- with a lease ------------------------------------------------------------------ */

/*
 * Fills in the status of a job with a dead supervisor: the command's status is lost with its
 * parent, but this process knows which signal ended the command.
 */
static void lease_add_status(const struct cancelled *job)
{
	struct snapshot_lease *over =
		snapshot_find_token(job->view, job->termination->owner.token);

	if (over && over->status < 0 && job->termination->is_supervised &&
		job->termination->begun_ms)
		over->status = command_status(job);
}

/*
 * Whether a watchdog records the end: it has more facts, and the record of the lease tells it who
 * has cancelled the job.  Not the end of a shell's lease, which the shell survives.
 */
static bool has_watchdog(const struct cancelled *job)
{
	const struct snapshot_lease *over =
		snapshot_find_token(job->view, job->termination->owner.token);

	return over && job->termination->was_alive && over->lease.cancelled_by[0] &&
	       strcmp(over->lease.recorded_by, RECORDER_WATCHDOG) == 0;
}

/* Whether --cancel has ended the job.  Else the job had ended by itself before it got TERM. */
static bool has_ended_it(const struct cancelled *job)
{
	const struct snapshot_lease *over =
		snapshot_find_token(job->view, job->termination->owner.token);

	return job->termination->was_alive || (over && over->lease.cancelled_by[0]);
}

/* --- without a lease --------------------------------------------------------------- */

static int leaseless_status(const struct cancelled *job, const struct ticket *ticket)
{
	const struct liveness *life;

	if (ticket->state == TICKET_WAITING)
		return 128 + SIGTERM;
	if (job->termination->is_supervised)
		return command_status(job);
	life = liveness_set_judge(
		&job->view->lives, &ticket->owner, true, clock_boot_ms());
	return life ? life->status : -1;
}

/*
 * Reads the latest ticket of the job again, because it may have changed; if it is gone, takes the
 * one that was read before.  Returns its number.
 */
static uint64_t read_latest(const struct cancelled *job, struct ticket *ret)
{
	struct ticket_file *file = &job->queue->file;
	uint64_t number = job->job;
	int kind = ticket_read(file, number, ret);

	if (kind == TICKET_RECORD && ret->latest) {
		number = ret->latest;
		kind = ticket_read(file, number, ret);
	}
	if (kind == TICKET_RECORD) {
		/* an ended job has no name any more but the one that was read before */
		text_copy(ret->request.name, NAME_SIZE_MAX, job->ticket->request.name);
		return number;
	}
	*ret = *job->ticket;
	return job->number;
}

/* Whether this attempt's end is in the history: a job that obeys the request records it itself. */
static bool is_recorded(const struct cancelled *job, const struct ticket *ticket)
{
	struct history_end end;

	return history_find_of_boot(job->view->dir, job->job, ticket->since_ms, &end) ==
		       0 &&
	       end.attempt == ticket->attempt;
}

/* Records the end of a job that was waiting, or that uses no GPU. */
static void record_leaseless(const struct cancelled *job, const char *by)
{
	struct ticket ticket;
	uint64_t number = read_latest(job, &ticket);
	bool has_run = ticket.state != TICKET_WAITING;

	if ((has_run && ticket.request.gpus) || is_recorded(job, &ticket))
		return;
	end_record_append_leaseless(job->view->dir, number, &ticket,
		has_run ? ticket.turn_ms : 0,
		&(struct end_facts){ .status = leaseless_status(job, &ticket),
			.how = HISTORY_CANCEL,
			.by = by,
			.is_beside = has_run && !job->termination->is_supervised });
}

void cancel_record(const struct cancelled *cancelled)
{
	char name[64];
	struct text text = TEXT_ON(name);

	describe_user(getuid(), NULL, &text);
	if (snapshot_read(cancelled->view, clock_boot_ms()) == 0 &&
		snapshot_judge(cancelled->view, clock_boot_ms()) == 0) {
		lease_add_status(cancelled);
		if (!has_watchdog(cancelled))
			end_record_write(cancelled->view,
				cancelled->termination->owner.token,
				has_ended_it(cancelled) ? HISTORY_CANCEL : NULL, name);
	}
	if (cancelled->termination->begun_ms)
		record_leaseless(cancelled, name);
}
