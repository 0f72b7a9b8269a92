/* Joining the queue, joining it again where it was lost, and leaving it. */
#include <errno.h>

#include "broker_parts.h"
#include "clock.h"

uint32_t broker_first_state(const struct request *request)
{
	bool has_to_wait = request->gpus || request->after[0] || request->after_ok[0] ||
			   request->is_singleton;

	return has_to_wait ? TICKET_WAITING : TICKET_GRANTED;
}

/* Makes the new FIFO before it closes the old one, so the owner never seems to be dead. */
static int replace_fifo(const struct statedir *dir, const char *folder,
	const struct owner *owner, int *fd)
{
	int made = beacon_create(dir, folder, owner);

	if (made < 0)
		return made;
	close_fd(fd);
	*fd = made;
	return 0;
}

/* Makes the FIFOs that are not there; who has nothing to wait for has no bell. */
static int make_fifos(struct broker *broker)
{
	const struct owner *owner = &broker->ticket.owner;
	const struct statedir *dir = broker->dir;

	int r = 0;

	if (beacon_look(dir, owner->token, NULL) == BEACON_GONE)
		r = replace_fifo(dir, BEACON_LIVE, owner, &broker->live_fd);
	if (r == 0 && broker->ticket.state == TICKET_WAITING &&
		!beacon_is_named(dir, BEACON_BELL, owner->token))
		r = replace_fifo(dir, BEACON_BELL, owner, &broker->bell_fd);
	return r;
}

void broker_mend(struct broker *broker)
{
	broker->is_damaged = false;
	if (statedir_repair(broker->dir) == 0)
		(void)!make_fifos(broker);
}

/* FIFOs first, then the ticket. */
int broker_take_ticket(struct broker *broker, struct why *why)
{
	int r = make_fifos(broker);

	if (r == -ENOENT && statedir_repair(broker->dir) == 0)
		r = make_fifos(broker); /* a folder had been removed */
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
				? "its lists of GPUs and jobs are too long together"
				: strerror(-r));
		broker_leave(broker);
	}
	return r;
}

int broker_join(struct broker *broker, const struct request *request, const char *user,
	struct why *why)
{
	struct ticket *ticket = &broker->ticket;
	int r;

	*ticket = (struct ticket){ .request = *request,
		.state = broker_first_state(request) };
	broker->view.moved = GPUSET_NONE; /* the request was made by what was read last */
	text_copy(ticket->boot, sizeof(ticket->boot), broker->dir->boot);
	text_copy(ticket->user, sizeof(ticket->user), user);
	r = owner_self(&ticket->owner);
	if (r < 0) {
		why_set(why, "cannot read /proc/self: %s", strerror(-r));
		return r;
	}
	ticket->since_ms = ticket->turn_ms = clock_boot_ms();
	r = hold_check(&broker->queue, request, why);
	if (r == 0)
		r = broker_check_quota(broker, UINT64_MAX, why);
	if (r == 0)
		r = broker_take_ticket(broker, why);
	if (r < 0)
		return r;
	/* of those who joined at the same time the last have to go again */
	r = broker_check_quota(broker, broker->number, why);
	if (r < 0)
		broker_leave(broker);
	return r;
}

/* The ticket file was lost: a new ticket in the new one, at its end. */
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
	broker->has_rejoined = true;
	broker->ticket.job = broker->ticket.latest = 0; /* numbers begin anew */
	return broker_take_ticket(broker, why);
}

void broker_leave(struct broker *broker)
{
	beacon_remove(broker->dir, BEACON_BELL, broker->ticket.owner.token);
	beacon_remove(broker->dir, BEACON_LIVE, broker->ticket.owner.token);
	close_fd(&broker->bell_fd);
	close_fd(&broker->live_fd);
}
