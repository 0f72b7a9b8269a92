/*
 * Further tickets of a job, and what other processes ask of it.  Once the job has a lease, this
 * file reads requests to cancel or preempt it, and puts the job back into the queue for a further
 * attempt.  While the job waits, it takes another ticket for another place.  Declared in broker.h.
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
 * Writes the number of the new ticket, and of its attempt, into the first ticket of the job.  If
 * the ticket file was replaced meanwhile, the record of that number is not ours, and stays so.
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
	first.attempt = broker->ticket.attempt;
	(void)!ticket_rewrite(&broker->queue.file, broker->ticket.job, &first);
}

/*
 * Takes a further ticket of the job, as ->ticket says, with a token and FIFOs of its own.  The
 * caller keeps the descriptors of the old ones.  On failure, the job has its ticket @before again.
 */
static int take_further_ticket(
	struct broker *broker, const struct ticket *before, struct why *why)
{
	uint64_t number = broker->number;
	int r;

	broker->ticket.state = TICKET_WAITING;
	broker->ticket.job = broker_job(broker);
	broker->ticket.latest = broker->ticket.turn = 0;
	broker->ticket.turn_ms = clock_boot_ms();
	broker->live_fd = broker->bell_fd = -1;
	r = token_make(broker->ticket.owner.token);
	if (r == 0)
		r = broker_take_ticket(broker, why);
	if (r < 0) {
		broker->ticket = *before;
		broker->number = number;
		return r;
	}
	point_to_latest(broker);
	return 0;
}

/* Forgets what fair-share has counted: the next ticket stands where its number puts it. */
static void forget_share(struct broker *broker)
{
	broker->ticket.order_ms = broker->ticket.late_ms = 0;
	broker->state.waits = broker->state.is_late = false;
	broker->result.share = (struct broker_share){ .late_ms = 0 };
}

int broker_requeue(struct broker *broker, const struct request *request,
	int64_t not_before_ms, struct why *why)
{
	struct broker_debt debt = { .number = broker->number,
		.live_fd = broker->live_fd,
		.gpus = broker->result.verdict.gpus };
	struct ticket before = broker->ticket;
	struct request *next = &broker->ticket.request;
	int r;

	text_copy(debt.token, sizeof(debt.token), before.owner.token);
	/*
	 * A user may have cancelled the job while it ran.  Later turns read from the hint on, and
	 * the hint may have passed that control.  So read all controls now.
	 */
	(void)!queue_begin(&broker->queue, debt.number);
	broker->state.wish_done = broker->queue.wish.number; /* for the attempt before */
	broker->ticket.attempt = before.attempt ? before.attempt + 1 : 2;
	broker->ticket.runs = COMMAND_NONE;
	broker->ticket.goes_back = 0;
	*next = *request;
	/* as they are by now */
	next->priority = before.request.priority;
	next->allow = before.request.allow;
	text_copy(next->prefer, sizeof(next->prefer), before.request.prefer);
	broker->ticket.since_ms = clock_boot_ms();
	broker->ticket.not_before_ms = not_before_ms;
	forget_share(broker);
	broker_remove_bell(broker);
	/* the FIFOs of the new ticket do not keep the old lease alive; @debt has the old one */
	r = take_further_ticket(broker, &before, why);
	if (r < 0) {
		broker->live_fd = debt.live_fd;
		return r;
	}
	broker_settle_arrival(broker);
	broker->state.debt = debt;
	return 0;
}

/*
 * Marks the job's earlier ticket @number as TICKET_LEFT: it does not wait any more.  If its lease
 * was given back, integrity_find() would look for the lease otherwise, and take it for lost.
 */
static void mark_ticket_left(struct broker *broker, uint64_t number, const char *token)
{
	struct ticket before;

	if (ticket_read(&broker->queue.file, number, &before) != TICKET_RECORD ||
		strcmp(before.owner.token, token) != 0)
		return;
	before.state = TICKET_LEFT;
	(void)!ticket_rewrite(&broker->queue.file, number, &before);
}

/*
 * Takes a ticket for another place in the queue, as ->ticket says; @before is the ticket so far.
 * On failure, the job has that one again.
 */
static int move_in_queue(
	struct broker *broker, const struct ticket *before, struct why *why)
{
	uint64_t number = broker->number;
	int live_fd = broker->live_fd, bell_fd = broker->bell_fd, r;

	/* outcome.h tells a further attempt by its number from another ticket of the first */
	if (!before->attempt)
		broker->ticket.attempt = 1;
	r = take_further_ticket(broker, before, why);
	if (r < 0) {
		broker->live_fd = live_fd;
		broker->bell_fd = bell_fd;
		return r;
	}
	/* a cancel that came before the new ticket: later turns may read only what is behind it */
	(void)!queue_begin(&broker->queue, number);
	/* from now on the new ticket counts, and not before: the job always has one that waits */
	mark_ticket_left(broker, number, before->owner.token);
	fifo_remove(broker->dir, FIFO_BELL, before->owner.token);
	fifo_remove(broker->dir, FIFO_LIVE, before->owner.token);
	if (before->request.name_hash)
		job_name_remove(broker->dir, before->owner.token);
	close_fd(&bell_fd);
	close_fd(&live_fd);
	/* requests to preempt count as long as the ticket that asks waits: ask again */
	broker->preempt.count = 0;
	return 0;
}

int broker_renew(
	struct broker *broker, int64_t priority, int64_t late_ms, struct why *why)
{
	struct ticket before = broker->ticket;

	broker->ticket.request.priority = priority;
	broker->ticket.late_ms = late_ms;
	broker->ticket.order_ms = before.since_ms + late_ms;
	return move_in_queue(broker, &before, why);
}

int broker_obey_wish(struct broker *broker)
{
	const struct queue_wish *wish = &broker->queue.wish;
	struct why why;

	if (wish->number <= broker->state.wish_done)
		return 0;
	broker->state.wish_done = wish->number;
	if (wish->priority == broker->ticket.request.priority ||
		broker_renew(broker, wish->priority, broker->ticket.late_ms, &why) < 0)
		return 0; /* without a new ticket it waits as before */
	/* after the change: tickets that it has let pass, or holds back now, plan anew */
	bell_ring_all(broker->dir);
	return BROKER_AGAIN;
}

/*
 * Releases the lease in its files.  If a process of the attempt has survived the teardown, the
 * lease names that process, and is over only when it has ended.
 */
static int release_lease(struct broker *broker, const struct broker_debt *debt)
{
	const struct snapshot_lease *lease =
		snapshot_find_token(&broker->view, debt->token);
	struct owner before = broker->ticket.owner, left;
	bool is_left;

	text_copy(before.token, sizeof(before.token), debt->token);
	is_left = leftover_find_of(&before, broker->dir->pidns, &left) > 0;
	/* its files may have other slots than when it was written */
	return commit_release(&broker->view, debt->token,
		lease ? &lease->seen : &debt->gpus, is_left ? &left : NULL);
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
	mark_ticket_left(broker, debt->number, debt->token);
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
	if (queue_is_requeued(&broker->queue, broker_job(broker), broker->number,
		    ticket->owner.uid) &&
		!ticket->request.runs_once)
		return BROKER_ORDER_REQUEUE;
	r = preempt_judge(&broker->queue, &own, broker->state.orders_from,
		&broker->result.preempted_by);
	if (r < 0)
		return r;
	return r == PREEMPT_RIGHTLY ? BROKER_ORDER_PREEMPT : BROKER_ORDER_NONE;
}

void broker_note_requeue(struct broker *broker)
{
	broker->ticket.goes_back = 1;
	(void)!ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
}

void broker_remove_bell(struct broker *broker)
{
	if (broker->bell_fd < 0)
		return;
	fifo_remove(broker->dir, FIFO_BELL, broker->ticket.owner.token);
	close_fd(&broker->bell_fd);
}

/* If the windows cannot be read, they are read again after this time. */
enum { WINDOWS_AGAIN_MS = 60000 };

int64_t broker_window_ms(const struct broker *broker)
{
	struct windows windows = WINDOWS_NONE;
	int64_t real_ms = clock_real_ms(), now_ms = clock_boot_ms(), begin_ms;

	if (!broker->ticket.request.is_preemptible)
		return INT64_MAX;
	if (windows_read(broker->dir, &windows) < 0)
		return now_ms + WINDOWS_AGAIN_MS;
	for (size_t i = 0; i < windows.count; i++)
		window_place(&windows.all[i],
			snapshot_find_gpu(&broker->view, windows.all[i].uuid), real_ms,
			now_ms);
	begin_ms = windows_begin_ms(
		&windows, &broker->result.verdict.gpus, broker->ticket.owner.uid, now_ms);
	windows_release(&windows);
	return begin_ms;
}

/* --- a job that was to begin later ------------------------------------------------ */

enum { JOIN_AGAIN_MS = 5000 };

/* Holds the job until @until_ms.  The turn reads the record.  Returns as join_anew(). */
static int hold_until(struct broker *broker, int64_t until_ms)
{
	int r;

	broker->ticket.not_before_ms = until_ms;
	r = ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
	return r < 0 ? r : BROKER_AGAIN;
}

/*
 * The job begins now: it takes a new ticket, so that its place is that of a job which comes now.
 * Otherwise a held job would be a place in the queue that its user keeps for as long as they like.
 * Without a new ticket (the disk is full, or a limit of the process is reached) the job tries again
 * later.  Returns BROKER_AGAIN or a negative errno.
 */
static int join_anew(struct broker *broker)
{
	struct ticket before = broker->ticket;
	struct why why;

	broker->ticket.since_ms = clock_boot_ms();
	broker->ticket.not_before_ms = 0;
	forget_share(broker);
	if (move_in_queue(broker, &before, &why) < 0)
		return hold_until(broker, clock_boot_ms() + JOIN_AGAIN_MS);
	broker_settle_arrival(broker);
	return BROKER_AGAIN;
}

int broker_begin(struct broker *broker)
{
	const struct ticket *ticket = &broker->ticket;

	/* a further attempt, which waits before it is tried again, has its ticket already */
	if (!ticket->not_before_ms || ticket->attempt > 1)
		return 0;
	if (ticket->not_before_ms == TICKET_HELD) {
		if (!queue_is_released(
			    &broker->queue, broker_job(broker), ticket->owner.uid))
			return 0;
		if (broker->input.begin_ms > broker->state.now_ms)
			return hold_until(broker, broker->input.begin_ms);
	} else if (ticket->not_before_ms > broker->state.now_ms) {
		return 0;
	}
	return join_anew(broker);
}
