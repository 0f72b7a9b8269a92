/*
 * What the broker does once its job has a lease: reads requests to cancel or preempt the job, and
 * puts the job back into the queue for a further attempt.  Declared in broker.h.
 *
 * The order of a further attempt: the new ticket, the new ticket's number in the first ticket, and
 * only then the end of the old lease.  A reader that finds the old lease over therefore finds the
 * new ticket, and does not take the job for ended (outcome.h).
 */
#include "bell.h"
#include "broker_parts.h"
#include "clock.h"
#include "commit.h"

/*
 * Writes the number of the new ticket into the first ticket of the job.  If the ticket file was
 * replaced meanwhile, the record of that number is not ours, and stays as it is.
 */
static void point_to_latest(struct broker *broker)
{
	struct ticket first;

	if (ticket_read(&broker->queue.file, broker->ticket.job, &first) !=
			TICKET_RECORD ||
		first.owner.pid != broker->ticket.owner.pid ||
		first.owner.start != broker->ticket.owner.start)
		return;
	first.latest = broker->number;
	(void)!ticket_rewrite(&broker->queue.file, broker->ticket.job, &first);
}

int broker_requeue(struct broker *broker, const struct request *request,
	int64_t not_before_ms, struct why *why)
{
	struct broker_debt debt = { .number = broker->number,
		.live_fd = broker->live_fd,
		.gpus = broker->result.verdict.gpus };
	struct ticket before = broker->ticket;
	int r;

	text_copy(debt.token, sizeof(debt.token), before.owner.token);
	/*
	 * A user may have cancelled the job while it ran.  Later turns read from the hint on, and
	 * the hint may have passed that control.  So read all controls now.
	 */
	(void)!queue_begin(&broker->queue, debt.number);
	broker->ticket.state = TICKET_WAITING;
	broker->ticket.job = broker_job(broker);
	broker->ticket.attempt = before.attempt ? before.attempt + 1 : 2;
	broker->ticket.latest = broker->ticket.turn = 0;
	broker->ticket.runs = COMMAND_NONE;
	broker->ticket.request = *request;
	broker->ticket.since_ms = broker->ticket.turn_ms = clock_boot_ms();
	broker->ticket.not_before_ms = not_before_ms;
	broker->live_fd = -1; /* @debt keeps it open; the new ticket gets another */
	if (broker->bell_fd >= 0) {
		fifo_remove(broker->dir, FIFO_BELL, before.owner.token);
		close_fd(&broker->bell_fd);
	}
	/* a token of its own, so the FIFOs of the new ticket do not keep the old lease alive */
	r = token_make(broker->ticket.owner.token);
	if (r == 0)
		r = broker_take_ticket(broker, why);
	if (r < 0) {
		broker->ticket = before;
		broker->number = debt.number;
		broker->live_fd = debt.live_fd;
		return r;
	}
	point_to_latest(broker);
	broker->state.debt = debt;
	return 0;
}

/*
 * Marks the ticket of the lease that was given back as TICKET_LEFT.  Otherwise integrity_find()
 * would look for its lease and take the lease for lost.
 */
static void mark_ticket_left(struct broker *broker, const struct broker_debt *debt)
{
	struct ticket before;

	if (ticket_read(&broker->queue.file, debt->number, &before) != TICKET_RECORD ||
		strcmp(before.owner.token, debt->token) != 0)
		return;
	before.state = TICKET_LEFT;
	(void)!ticket_rewrite(&broker->queue.file, debt->number, &before);
}

/*
 * Releases the lease in its files.  If a process of the attempt has survived the teardown, the
 * lease names that process, and is over only when it has ended.
 */
static int release_lease(struct broker *broker, const struct broker_debt *debt)
{
	struct owner before = broker->ticket.owner, left;
	bool is_left;

	text_copy(before.token, sizeof(before.token), debt->token);
	is_left = leftover_find_of(&before, broker->dir->pidns, &left) > 0;
	return commit_release(
		&broker->view, debt->token, &debt->gpus, is_left ? &left : NULL);
}

int broker_give_back(struct broker *broker)
{
	struct broker_debt *debt = &broker->state.debt;
	int r;

	if (!debt->token[0])
		return 0;
	/* this opens lease files again that were replaced while the job ran */
	r = snapshot_read(&broker->view, clock_boot_ms());
	if (r == 0)
		r = release_lease(broker, debt);
	if (r != 0)
		return r < 0 ? r : BROKER_LOCKED;
	mark_ticket_left(broker, debt);
	/* close this last: it wakes watchers that have no bell */
	close_fd(&debt->live_fd);
	bell_ring_all(broker->dir);
	*debt = BROKER_DEBT_NONE;
	return 0;
}

int broker_note_command(struct broker *broker, const struct command *runs)
{
	bool is_again = broker->ticket.runs.pid == runs->pid;
	int r;

	broker->ticket.runs = *runs;
	(void)!ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
	if (!broker->ticket.request.gpus)
		return 0;
	/* a repeated call comes later: open lease files again that were replaced meanwhile */
	r = is_again ? snapshot_read(&broker->view, clock_boot_ms()) : 0;
	if (r == 0)
		r = commit_note_command(&broker->view, broker->ticket.owner.token,
			&broker->result.verdict.gpus, runs);
	return r <= 0 ? r : BROKER_LOCKED;
}

int broker_read_orders(struct broker *broker)
{
	const struct ticket *ticket = &broker->ticket;
	struct lease own = {
		.ticket = broker->number,
		.job = ticket->job,
		.gpus = broker->result.verdict.gpus,
		.priority = ticket->request.priority,
		.is_supervised = ticket->request.is_supervised,
		.is_preemptible = ticket->request.is_preemptible,
	};
	int r;

	/* before reading: a ring that comes later is not lost */
	if (broker->bell_fd >= 0)
		bell_drain(broker->bell_fd);
	r = queue_begin(&broker->queue, broker->number);
	if (r != 0) /* the ticket file was replaced, and its controls with it */
		return r < 0 ? r : BROKER_ORDER_NONE;
	if (queue_is_cancelled(&broker->queue, broker_job(broker), ticket->owner.uid,
		    &broker->result.cancelled_by))
		return BROKER_ORDER_CANCEL;
	r = preempt_judge(&broker->queue, &own, broker->state.orders_from,
		&broker->result.preempted_by);
	if (r < 0)
		return r;
	return r == PREEMPT_RIGHTLY ? BROKER_ORDER_PREEMPT : BROKER_ORDER_NONE;
}
