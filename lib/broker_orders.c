/* After the lease: what others want of the job, and its way back into the queue. */
#include "broker_parts.h"
#include "clock.h"
#include "commit.h"

/* The first ticket of the job says which is its latest. */
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
		.gpus = broker->verdict.gpus };
	struct ticket before = broker->ticket;
	int r;

	text_copy(debt.token, sizeof(debt.token), before.owner.token);
	/* what was said of the job until now stands before its new ticket */
	(void)!queue_begin(&broker->queue, debt.number);
	broker->ticket.state = TICKET_WAITING;
	broker->ticket.job = broker_job(broker);
	broker->ticket.attempt = before.attempt ? before.attempt + 1 : 2;
	broker->ticket.latest = broker->ticket.turn = 0;
	broker->ticket.runs = COMMAND_NONE;
	broker->ticket.request = *request;
	broker->ticket.since_ms = broker->ticket.turn_ms = clock_boot_ms();
	broker->ticket.not_before_ms = not_before_ms;
	broker->live_fd = -1;
	if (broker->bell_fd >= 0) {
		beacon_remove(broker->dir, BEACON_BELL, before.owner.token);
		close_fd(&broker->bell_fd);
	}
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
	broker->debt = debt;
	return 0;
}

/* Its ticket speaks of no lease any more, for who looks for one that was lost. */
static void leave_ticket(struct broker *broker, const struct broker_debt *debt)
{
	struct ticket before;

	if (ticket_read(&broker->queue.file, debt->number, &before) != TICKET_RECORD ||
		strcmp(before.owner.token, debt->token) != 0)
		return;
	before.state = TICKET_LEFT;
	(void)!ticket_rewrite(&broker->queue.file, debt->number, &before);
}

/* A process of the attempt that teardown could not end keeps the lease. */
static int release(struct broker *broker, const struct broker_debt *debt)
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
	struct broker_debt *debt = &broker->debt;
	int r;

	if (!debt->token[0])
		return 0;
	/* a file that was replaced while the job ran is opened again */
	r = snapshot_read(&broker->view, clock_boot_ms());
	if (r == 0)
		r = release(broker, debt);
	if (r != 0)
		return r;
	leave_ticket(broker, debt);
	/* now for whom the bell is not rung: those who only watch */
	close_fd(&debt->live_fd);
	beacon_ring_all(broker->dir);
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
	/* a lease file that was replaced meanwhile is opened again */
	r = is_again ? snapshot_read(&broker->view, clock_boot_ms()) : 0;
	return r < 0 ? r
		     : commit_note_command(&broker->view, broker->ticket.owner.token,
			       &broker->verdict.gpus, runs);
}

int broker_read_orders(struct broker *broker)
{
	const struct ticket *ticket = &broker->ticket;
	struct lease own = {
		.ticket = broker->number,
		.job = ticket->job,
		.gpus = broker->verdict.gpus,
		.priority = ticket->request.priority,
		.is_supervised = ticket->request.is_supervised,
		.is_preemptible = ticket->request.is_preemptible,
	};
	int r;

	if (broker->bell_fd >= 0)
		beacon_drain(broker->bell_fd);
	r = queue_begin(&broker->queue, broker->number);
	if (r != 0)
		return r < 0 ? r : BROKER_ORDER_NONE;
	if (queue_is_cancelled(&broker->queue, broker_job(broker), ticket->owner.uid,
		    &broker->cancelled_by))
		return BROKER_ORDER_CANCEL;
	r = preempt_judge(
		&broker->queue, &own, broker->orders_from, &broker->preempted_by);
	if (r < 0)
		return r;
	return r == PREEMPT_RIGHTLY ? BROKER_ORDER_PREEMPT : BROKER_ORDER_NONE;
}
