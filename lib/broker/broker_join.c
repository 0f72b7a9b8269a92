/*
 * The ticket and its FIFOs: joins the queue, joins it again if the ticket file was lost, leaves it.
 * The FIFOs are made before the ticket is appended, so a ticket that can be read has its FIFOs.
 * Declared in broker.h and broker_parts.h.
 */
#include <errno.h>

#include "broker_parts.h"
#include "clock.h"
#include "live_fifo.h"
#include "queue_sweep.h"

enum { ARRIVAL_MS = 1000 }; /* the most that ->since_ms may be too early */

void broker_first_state(struct broker *broker)
{
	struct ticket *ticket = &broker->ticket;
	const struct request *request = &ticket->request;
	bool has_to_wait;

	ticket->not_before_ms =
		broker->input.is_held ? TICKET_HELD : broker->input.begin_ms;
	has_to_wait = request->gpus || request->after[0] || request->after_ok[0] ||
		      request->is_singleton || ticket->not_before_ms;
	ticket->state = has_to_wait ? TICKET_WAITING : TICKET_GRANTED;
}

/*
 * Makes the FIFO and then closes the old descriptor.  In between this process holds both, so its
 * owner never seems to be dead.
 */
static int replace_fifo(const struct statedir *dir, const char *folder,
	const struct owner *owner, int *fd)
{
	int made = fifo_create(dir, folder, owner);

	if (made < 0)
		return made;
	close_fd(fd);
	*fd = made;
	return 0;
}

/*
 * Makes the FIFOs that are missing, and keeps a long name of the job beside them.  A job that has
 * nothing to wait for needs no bell, unless it is supervised.
 */
static int make_fifos(struct broker *broker)
{
	const struct owner *owner = &broker->ticket.owner;
	const struct request *request = &broker->ticket.request;
	const struct statedir *dir = broker->dir;
	int r = 0;

	if (live_fifo_look(dir, owner->token, NULL) == LIVE_FIFO_GONE)
		r = replace_fifo(dir, FIFO_LIVE, owner, &broker->live_fd);
	if (r == 0 && request->name_hash)
		r = job_name_write(dir, owner->token, request->name);
	if (r == 0 &&
		(broker->ticket.state == TICKET_WAITING || request->is_supervised) &&
		!fifo_is_named(dir, FIFO_BELL, owner->token))
		r = replace_fifo(dir, FIFO_BELL, owner, &broker->bell_fd);
	return r;
}

void broker_mend(struct broker *broker)
{
	broker->state.is_damaged = false;
	if (statedir_repair(broker->dir) == 0)
		(void)!make_fifos(broker);
}

int broker_take_ticket(struct broker *broker, struct why *why)
{
	int r = make_fifos(broker);

	if (r == -ENOENT && statedir_repair(broker->dir) == 0)
		r = make_fifos(broker); /* a folder was removed */
	if (r < 0) {
		why_set(why, "cannot make a FIFO in '%s': %s", broker->dir->path,
			strerror(-r));
		broker_leave(broker);
		return r;
	}
	queue_sweep(&broker->queue);
	r = ticket_append(&broker->queue.file, &broker->ticket, &broker->number);
	if (r < 0) {
		why_set(why, "cannot take a ticket in '%s/tickets': %s",
			broker->dir->path,
			r == -EMSGSIZE
				? "the lists of its GPUs and jobs do not fit into one record"
				: strerror(-r));
		broker_leave(broker);
		return r;
	}
	broker->queue.wish.job = broker_job(broker);
	broker->queue.wish.uid = broker->ticket.owner.uid;
	return 0;
}

void broker_settle_arrival(struct broker *broker)
{
	int64_t now_ms = clock_boot_ms();

	if (now_ms - broker->ticket.since_ms <= ARRIVAL_MS)
		return;
	broker->ticket.since_ms = now_ms;
	(void)!ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
}

/*
 * Counts the waiting tickets of user @uid (UINT32_MAX: of all users) before ticket @before, up to
 * @most.  Returns a smaller number if the queue cannot be read.
 */
static unsigned count_waiting(
	struct broker *broker, uint32_t uid, uint64_t before, unsigned most)
{
	uint64_t number, end;
	unsigned count = 0;
	struct queue_row row;

	if (queue_begin(&broker->queue, before == UINT64_MAX ? 0 : before) != 0)
		return 0;
	number = broker->queue.from;
	end = before < broker->queue.end ? before : broker->queue.end;
	/* mostly there are fewer tickets in all: do not read them */
	if (end < number || end - number < most)
		return 0;
	while (count < most && queue_next(&broker->queue, &number, &row) == 0 &&
		row.number < end) {
		struct liveness *life;

		if (!row.is_waiting || (uid != UINT32_MAX && row.ticket.owner.uid != uid))
			continue;
		if (broker_judge_waiting(broker, &row, &life) < 0)
			break;
		count += life != NULL;
	}
	return count;
}

int broker_check_quota(struct broker *broker, uint64_t before, struct why *why)
{
	const struct ticket *ticket = &broker->ticket;
	uint32_t uid = ticket->owner.uid;
	unsigned own = uid ? broker->input.max_waiting : 0,
		 all = broker->input.all_waiting;

	if (ticket->state != TICKET_WAITING)
		return 0;
	if (own && count_waiting(broker, uid, before, own) >= own)
		why_set(why, "max-waiting allows you at most %u jobs in the queue", own);
	else if (all && count_waiting(broker, UINT32_MAX, before, all) >= all)
		why_set(why, "all-waiting allows at most %u jobs in the queue", all);
	else
		return 0;
	return -EDQUOT;
}

int broker_join(struct broker *broker, const struct request *request, const char *user,
	struct why *why)
{
	struct ticket *ticket = &broker->ticket;
	int r;

	*ticket = (struct ticket){ .attempt = 0 };
	broker_set_request(broker, request);
	broker_first_state(broker);
	text_copy(ticket->boot, sizeof(ticket->boot), broker->dir->boot);
	text_copy(ticket->user, sizeof(ticket->user), user);
	r = owner_self(&ticket->owner);
	if (r < 0) {
		why_set(why, "cannot read /proc/self: %s", strerror(-r));
		return r;
	}
	ticket->since_ms = ticket->turn_ms = clock_boot_ms();
	r = dependency_check(&broker->queue, request, why);
	if (r == 0)
		r = broker_check_quota(broker, UINT64_MAX, why);
	if (r == 0)
		r = broker_take_ticket(broker, why);
	if (r < 0)
		return r;
	broker_settle_arrival(broker);
	/* other processes may have joined after the check: if these are too many, the last leave */
	r = broker_check_quota(broker, broker->number, why);
	if (r < 0)
		broker_leave(broker);
	return r;
}

int broker_rejoin(struct broker *broker, struct why *why)
{
	int r = statedir_repair(broker->dir);

	queue_release(&broker->queue);
	if (r == 0)
		r = queue_open(&broker->queue, broker->dir);
	if (r < 0) {
		why_set(why, "the state directory '%s' was lost: %s", broker->dir->path,
			strerror(-r));
		return r;
	}
	broker->result.has_rejoined = true;
	/* the new file counts its tickets from the beginning, so old numbers mean nothing */
	broker->ticket.job = broker->ticket.latest = 0;
	broker->state.wish_done = 0;
	return broker_take_ticket(broker, why);
}

void broker_leave(struct broker *broker)
{
	fifo_remove(broker->dir, FIFO_BELL, broker->ticket.owner.token);
	fifo_remove(broker->dir, FIFO_LIVE, broker->ticket.owner.token);
	if (broker->ticket.request.name_hash)
		job_name_remove(broker->dir, broker->ticket.owner.token);
	close_fd(&broker->bell_fd);
	close_fd(&broker->live_fd);
}
