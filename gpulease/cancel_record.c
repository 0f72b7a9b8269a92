#include <signal.h>

#include "cancel_record.h"
#include "clock.h"
#include "ending.h"
#include "explain.h"

/* Of a supervisor's command, which we have ended. */
static int status_of_command(const struct cancelled *job)
{
	return 128 + (job->is_killed ? SIGKILL : SIGTERM);
}

/* --- with a lease ------------------------------------------------------------------ */

/* With its supervisor gone nobody but us knows what has ended its command. */
static void add_status(const struct cancelled *job)
{
	struct snapshot_lease *over =
		snapshot_find_token(job->view, job->termination->owner.token);

	if (over && over->status < 0 && job->termination->is_supervised &&
		job->termination->begun_ms)
		over->status = status_of_command(job);
}

/* --- without ----------------------------------------------------------------------- */

static int status_of(const struct cancelled *job, const struct ticket *ticket)
{
	const struct life *life;

	if (ticket->state == TICKET_WAITING)
		return 128 + SIGTERM;
	if (job->termination->is_supervised)
		return status_of_command(job);
	life = lives_judge(&job->view->lives, &ticket->owner, true, clock_boot_ms());
	return life ? life->status : -1;
}

/* Reads the latest ticket of the job again, as it may have changed.  Returns its number. */
static uint64_t read_latest(const struct cancelled *job, struct ticket *ret)
{
	struct ticket_file *file = &job->queue->file;
	uint64_t number = job->job;
	int kind = ticket_read(file, number, ret);

	if (kind == TICKET_RECORD && ret->latest) {
		number = ret->latest;
		kind = ticket_read(file, number, ret);
	}
	if (kind == TICKET_RECORD)
		return number;
	*ret = *job->ticket;
	return job->number;
}

/* Who obeys tells that himself, before he leaves. */
static bool has_told(const struct cancelled *job, const struct ticket *ticket)
{
	struct history_end end;

	return history_find_of_boot(
		       job->view->dir->fd, job->job, ticket->since_ms, &end) == 0 &&
	       end.attempt == ticket->attempt;
}

/* It waited, or uses no GPU. */
static void record_leaseless(const struct cancelled *job, const char *by)
{
	struct ticket ticket;
	uint64_t number = read_latest(job, &ticket);
	bool has_run = ticket.state != TICKET_WAITING;

	if ((has_run && ticket.request.gpus) || has_told(job, &ticket))
		return;
	ending_tell_leaseless(job->view->dir, number, &ticket,
		has_run ? ticket.turn_ms : 0,
		&(struct ending_facts){ .status = status_of(job, &ticket),
			.how = HISTORY_CANCEL,
			.by = by });
}

void cancel_record(const struct cancelled *cancelled)
{
	char name[64];
	struct text text = TEXT_ON(name);

	describe_user(getuid(), NULL, &text);
	if (snapshot_read(cancelled->view, clock_boot_ms()) == 0 &&
		snapshot_judge(cancelled->view, clock_boot_ms()) == 0) {
		add_status(cancelled);
		ending_record(cancelled->view, cancelled->termination->owner.token,
			HISTORY_CANCEL, name);
	}
	if (cancelled->termination->begun_ms)
		record_leaseless(cancelled, name);
}
