/*
 * Which waiters look after the tickets ahead of them.
 *
 * A ticket whose owner is stopped or blind raises no event.  So a waiter that only tickets ahead
 * keep from starting has a timer, and asks their owners, see passover.h.  Each of its turns reads
 * all tickets ahead.  If each waiter had a timer, the time that all of them need would grow with
 * the square of their number.  So only eight waiters have timers: the first eight in the order of
 * the queue that could start.  They begin 1 s after each other.
 *
 * All eight may be stopped themselves, as in a frozen container.  So the waiters behind them check
 * now and then that eight owners take turns: the next eight waiters after 30 s, the eight behind
 * them after 60 s, and so on.  A waiter gets a timer if fewer than eight owners before it take
 * turns.
 */
#include "beacon.h"
#include "broker_parts.h"
#include "clock.h"

enum {
	LOOKERS_MOST = 8,
	STAGGER_MS = 1000,
	RECENT_MS = 25000, /* an owner with a timer takes a turn every 12 s or earlier */
	LOOK_MS = 30000,
	LOOK_MOST_MS = 600000,
};

/* How many tickets ahead have such a timer, counted up to eight, and how many wait behind these. */
struct ahead {
	unsigned lookers, others;
};

/*
 * Whether the owner of a ticket ahead looks after the tickets before it, too.  A ticket that waits
 * for a job does not, and a ticket that is stuck does so in vain.  A ticket that the plan starts
 * has none before it to look after.  At the beginning an owner may not have taken its turn yet.
 */
static bool is_looker(struct broker *broker, const struct queue_row *row)
{
	const struct ticket *ticket = &row->ticket;
	const struct request *request = &ticket->request;
	struct plan_row wanted = plan_row_of(row->number, ticket);

	if (broker->now_ms - broker->ahead_since_ms >= RECENT_MS &&
		clock_age_ms(broker->now_ms, ticket->turn_ms) > RECENT_MS)
		return false;
	return !passover_plans_start(&broker->passover, row->number) &&
	       !ticket->stuck[0] && !request->after[0] && !request->after_ok[0] &&
	       !request->is_singleton && ticket->not_before_ms <= broker->now_ms &&
	       plan_could_start(&broker->plan, &wanted) && broker_counts(broker, row);
}

static int count_ahead(struct broker *broker, struct ahead *ret)
{
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	*ret = (struct ahead){ .lookers = 0 };
	plan_begin(&broker->plan, &broker->view.facts);
	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0) {
		if (ret->lookers == LOOKERS_MOST)
			ret->others++;
		else
			ret->lookers += is_looker(broker, &row);
	}
	return r < 0 ? r : 0;
}

/* When a waiter that is not among the eight looks at them again. */
static int64_t next_look_ms(const struct broker *broker, const struct ahead *ahead)
{
	int64_t since_ms = broker->ahead_since_ms;
	int64_t span_ms = min_i64(
		LOOK_MOST_MS, (1 + ahead->others / LOOKERS_MOST) * (int64_t)LOOK_MS);
	int64_t spans = (broker->now_ms - since_ms) / span_ms + 1;

	return since_ms + spans * span_ms + ahead->others % LOOKERS_MOST * STAGGER_MS;
}

int broker_looks_ahead(struct broker *broker, bool could_start)
{
	struct ahead ahead;
	int64_t at_ms;
	int r;

	if (!could_start) {
		broker->ahead_since_ms = 0;
		return 0;
	}
	if (!broker->ahead_since_ms)
		broker->ahead_since_ms = broker->now_ms;
	r = count_ahead(broker, &ahead);
	if (r < 0)
		return r;
	if (ahead.lookers == LOOKERS_MOST) {
		broker->wake_ms = min_i64(broker->wake_ms, next_look_ms(broker, &ahead));
		return 0;
	}
	at_ms = broker->ahead_since_ms + ahead.lookers * STAGGER_MS;
	if (broker->now_ms >= at_ms)
		return 1;
	broker->wake_ms = min_i64(broker->wake_ms, at_ms);
	return 0;
}

void broker_ring_behind(struct broker *broker)
{
	struct queue_cursor cursor;
	struct queue_row row;

	queue_order_begin(&cursor, QUEUE_LAST);
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0) {
		/* a ticket ahead that is stuck is to stay passed over */
		if (queue_comes_before(broker_place(broker), queue_place_of(&row)))
			beacon_ring(broker->dir, row.ticket.owner.token);
	}
}
