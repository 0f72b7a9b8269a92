/*
 * Tickets ahead with owners that do not act: an owner is stopped, takes turns and starts nothing,
 * or is blind (its own nvidia-smi fails).  passover.h says when a ticket is passed over; this file
 * says which waiters look for such tickets, and what this process says of itself.  Declared in
 * broker_parts.h.
 *
 * A ticket with a stopped or blind owner raises no event.  So a waiter that only tickets ahead
 * keep from starting has a timer, and asks their owners.  Each of its turns reads all tickets
 * ahead.  If each waiter had a timer, the time that all of them need would grow with the square of
 * their number.  So only eight waiters have timers: the first eight in the order of the queue that
 * could start.  They begin 1 s after each other.
 *
 * All eight may be stopped themselves, as in a frozen container.  So later waiters check now and
 * then that eight owners take turns: the next eight waiters after 30 s, the eight after them after
 * 60 s, and so on.  A waiter gets a timer if fewer than eight owners before it take turns.
 */
#include "bell.h"
#include "broker_parts.h"
#include "clock.h"
#include "commit.h"
#include "end_record.h"
#include "queue_order.h"

enum {
	LOOKERS_MOST = 8,
	STAGGER_MS = 1000, /* between the first looks of two waiters */
	RECENT_MS = 25000, /* an owner with a timer takes a turn every 12 s or earlier */
	/* for each eight tickets between the first eight and a waiter … */
	LOOK_MS = 30000,
	LOOK_MOST_MS = 600000, /* … and at most */
};

/* How many tickets ahead have such a timer (counted up to eight), and how many come after these. */
struct ahead {
	unsigned lookers, others;
};

/*
 * Whether the owner of a ticket ahead has such a timer.  It has none if its ticket waits for a job,
 * or if the plan starts the ticket, because then no ticket before it is in its way.  If its ticket
 * is stuck its timer is of no use.  In the first 25 s an owner counts even if it has not taken a
 * turn yet.
 */
static bool is_looker(struct broker *broker, const struct queue_row *row)
{
	const struct ticket *ticket = &row->ticket;
	const struct request *request = &ticket->request;
	struct plan_row wanted = plan_row_of(row->number, ticket);

	if (broker->state.now_ms - broker->state.ahead_since_ms >= RECENT_MS &&
		clock_age_ms(broker->state.now_ms, ticket->turn_ms) > RECENT_MS)
		return false;
	return !passover_plans_start(&broker->passover, row->number) &&
	       !ticket->stuck[0] && !request->after[0] && !request->after_ok[0] &&
	       !request->is_singleton && ticket->not_before_ms <= broker->state.now_ms &&
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

/* Returns when a waiter that is not among the eight checks them again. */
static int64_t next_look_ms(const struct broker *broker, const struct ahead *ahead)
{
	int64_t since_ms = broker->state.ahead_since_ms;
	int64_t span_ms = min_i64(
		LOOK_MOST_MS, (1 + ahead->others / LOOKERS_MOST) * (int64_t)LOOK_MS);
	int64_t spans = (broker->state.now_ms - since_ms) / span_ms + 1;

	return since_ms + spans * span_ms + ahead->others % LOOKERS_MOST * STAGGER_MS;
}

int broker_looks_ahead(struct broker *broker, bool could_start)
{
	struct ahead ahead;
	int64_t at_ms;
	int r;

	if (!could_start) {
		broker->state.ahead_since_ms = 0;
		return 0;
	}
	if (!broker->state.ahead_since_ms)
		broker->state.ahead_since_ms = broker->state.now_ms;
	r = count_ahead(broker, &ahead);
	if (r < 0)
		return r;
	if (ahead.lookers == LOOKERS_MOST) {
		broker->state.wake_ms =
			min_i64(broker->state.wake_ms, next_look_ms(broker, &ahead));
		return 0;
	}
	at_ms = broker->state.ahead_since_ms + ahead.lookers * STAGGER_MS;
	if (broker->state.now_ms >= at_ms)
		return BROKER_LOOKS_AHEAD;
	broker->state.wake_ms = min_i64(broker->state.wake_ms, at_ms);
	return 0;
}

void broker_ring_behind(struct broker *broker)
{
	struct queue_cursor cursor;
	struct queue_row row;

	/* a ticket ahead is not rung: its owner does not act, and stays passed over */
	queue_order_begin(&cursor, broker_place(broker));
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0)
		;
	cursor.until = QUEUE_LAST;
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0)
		if (row.number != broker->number)
			bell_ring(broker->dir, row.ticket.owner.token);
}

/* --- owners that take turns and start nothing ----------------------------------- */

/* A probe that ended at most so long ago still shows whether GPUs could be taken. */
enum { LATELY_MS = 4000 };

/* Whether there is a recent sound probe that this process trusts. */
static bool has_recent_probe(const struct broker *broker)
{
	const struct probe *probe = &broker->view.probe;

	return broker->view.has_probe && !probe_has_failed(probe) &&
	       clock_age_ms(broker->state.now_ms, probe->finished_ms) <= LATELY_MS &&
	       prober_trusts(&broker->prober, probe, probe->finished_ms);
}

/* For the passover: whether this process could take the GPUs itself, see passover_means. */
static bool can_take(void *arg, const struct gpuset *gpus)
{
	struct broker *broker = arg;
	struct snapshot *view = &broker->view;

	if (!has_recent_probe(broker))
		return false;
	gpuset_for_each (slot, gpus) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];

		if (gpu->locked_until_ms > broker->state.now_ms ||
			snapshot_is_outdated(view, gpu) || snapshot_is_blind(view, gpu))
			return false;
	}
	return commit_could_lock(view, gpus);
}

int broker_pass_stuck(struct broker *broker, bool could_start)
{
	const struct passover_means means = { can_take, broker };
	const struct probe *probe = &broker->view.probe;
	bool wants_probe;
	int64_t wake_ms;
	int r = passover_consider_starts(&broker->passover, could_start, &means,
		broker->state.now_ms, &wants_probe, &wake_ms);

	if (r != 0)
		return r == PASSOVER_CHANGED ? BROKER_AGAIN : r;
	broker->state.wake_ms = min_i64(broker->state.wake_ms, wake_ms);
	if (wants_probe &&
		!(broker->view.has_probe &&
			prober_serves(&broker->prober, probe, broker->state.now_ms)))
		prober_want(&broker->prober, broker->state.now_ms);
	return 0;
}

/* --- this process --------------------------------------------------------------- */

/* Writes "CODE:TEXT" without bytes that a record would escape. */
static void write_stuck(char out[STUCK_SIZE], const char *code, const char *words)
{
	(void)snprintf(out, STUCK_SIZE, "%s:%.*s", code, STUCK_TEXT_MAX, words);
	for (char *at = out; *at; at++)
		if (*at <= 0x20 || *at == 0x7f || *at == '%' || *at == '=')
			*at = '_';
}

void broker_tell_stuck(struct broker *broker, bool is_spinning)
{
	const struct verdict *verdict = &broker->result.verdict;
	const struct snapshot *view = &broker->view;
	char *out = broker->ticket.stuck;
	bool is_gpu = verdict->kind == VERDICT_GPU && verdict->slot < view->slots;
	char gpus[256];

	*out = '\0';
	if (!gpuset_is_empty(&broker->result.refused)) {
		end_record_name_gpus(view, &broker->result.refused, gpus, sizeof(gpus));
		write_stuck(out, STUCK_OWN, gpus);
	}
	if (broker->state.trouble)
		write_stuck(out, STUCK_ERRNO, strerror(broker->state.trouble));
	else if (broker->prober.own_trouble[0])
		write_stuck(out, STUCK_NVIDIA_SMI, broker->prober.own_trouble);
	else if (is_spinning)
		write_stuck(out, STUCK_TURN, "");
	else if (is_gpu && verdict->state == GPU_LOCKED)
		write_stuck(out, STUCK_LOCK, snapshot_gpu_name(view, verdict->slot).text);
	else if (is_gpu && verdict->state == GPU_UNKNOWN && view->has_probe &&
		 snapshot_is_blind(view, &view->gpus[verdict->slot]))
		write_stuck(out, STUCK_GPU, snapshot_gpu_name(view, verdict->slot).text);
}
