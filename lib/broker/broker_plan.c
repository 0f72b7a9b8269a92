/*
 * What the queue means for our ticket.  Only tickets ahead matter to it, so the plan takes the rows
 * in the order of the queue up to our own.  policy.h does the planning.  This file decides which
 * tickets take part, and which owners are watched because their end can change the verdict.
 * Declared in broker_parts.h.
 */
#include <errno.h>

#include "bell.h"
#include "broker_parts.h"
#include "queue_order.h"

/* A record that cannot be read for longer than this is damaged, and not just being written. */
enum { BROKEN_PATIENCE_MS = 1000 };

int broker_judge_waiting(
	struct broker *broker, const struct queue_row *row, struct liveness **ret_life)
{
	struct liveness *life = NULL;

	*ret_life = NULL;
	if (!row->is_waiting)
		return 0;
	life = liveness_set_judge(
		&broker->view.lives, &row->ticket.owner, false, broker->state.now_ms);
	if (!life)
		return -ENOMEM;
	if (!liveness_is_dead(life))
		*ret_life = life;
	return 0;
}

/*
 * Keeps the hint from passing a record that cannot be read: for a second it may be a live ticket
 * that its owner is just rewriting.  Later it is damaged, and would hold the hint for ever.
 */
static void bound_hint(struct broker *broker)
{
	uint64_t broken = broker->queue.first_broken;

	if (broken != broker->state.broken_ticket) {
		broker->state.broken_ticket = broken;
		broker->state.broken_since_ms = broker->state.now_ms;
	}
	if (broken && broker->state.hint > broken &&
		broker->state.now_ms - broker->state.broken_since_ms < BROKEN_PATIENCE_MS)
		broker->state.hint = broken;
}

struct queue_place broker_place(const struct broker *broker)
{
	const struct ticket *ticket = &broker->ticket;

	return (struct queue_place){ .priority = ticket->request.priority,
		.number = broker->number,
		.order_ms = ticket->order_ms,
		.since_ms = ticket->since_ms };
}

/*
 * Finds where the hint may be moved to: the first ticket in the file, of any priority, that waits
 * and has a live owner; our own at the latest.
 */
static int find_hint(struct broker *broker)
{
	uint64_t number = broker->queue.from;
	struct queue_row row;
	int r = QUEUE_END;

	broker->state.hint = number;
	while ((r = queue_next(&broker->queue, &number, &row)) == 0 &&
		row.number < broker->number) {
		struct liveness *life;

		r = broker_judge_waiting(broker, &row, &life);
		if (r < 0 || life)
			break;
		broker->state.hint = number;
	}
	if (r < 0)
		return r;
	if (r == QUEUE_END || row.number >= broker->number)
		broker->state.hint = broker->number;
	bound_hint(broker);
	return 0;
}

/* Marks the ticket's owner as watched, so that its end ends our wait. */
static int watch_owner(struct broker *broker, const struct queue_row *row)
{
	struct liveness *life = liveness_set_judge(
		&broker->view.lives, &row->ticket.owner, false, broker->state.now_ms);

	if (!life)
		return -ENOMEM;
	life->is_watched = true;
	return 0;
}

/* Whether the waiting ticket takes part in the plan. */
static bool is_in_plan(struct broker *broker, const struct queue_row *row)
{
	const struct snapshot_lease *lease;

	if (passover_includes(&broker->passover, row))
		return false;
	/* not if the owner has written its lease, and has not marked its ticket as granted yet */
	lease = snapshot_find_token(&broker->view, row->ticket.owner.token);
	return !lease || lease->is_over;
}

bool broker_counts(struct broker *broker, const struct queue_row *row)
{
	struct liveness *life;

	/* no memory to judge it: a ticket that counts by mistake delays, but takes no GPU twice */
	if (broker_judge_waiting(broker, row, &life) < 0)
		return true;
	/* it does not wait any more, or its owner is dead: the queue need not remember it */
	if (!life) {
		queue_forget(&broker->queue, row->number);
		return false;
	}
	return is_in_plan(broker, row);
}

bool broker_seems_to_wait(struct broker *broker, const struct queue_row *row)
{
	const struct owner *owner = &row->ticket.owner;
	const struct liveness *life =
		liveness_set_find(&broker->view.lives, owner->token);

	if (!row->is_waiting)
		return false;
	return life ? !liveness_is_dead(life)
		    : owner->pidns != broker->dir->pidns ||
			       !process_has_vanished(owner->pid);
}

bool broker_seems_to_count(struct broker *broker, const struct queue_row *row)
{
	return broker_seems_to_wait(broker, row) && is_in_plan(broker, row);
}

/*
 * PLAN_TO_ACT: the plan of a turn.  The passover notes which tickets this plan starts, to see
 * whether their owners do start (passover.h).  PLAN_TO_ASK: a plan over supposed facts, for example
 * as if some leases had ended; the passover does not see it.
 */
enum plan_purpose { PLAN_TO_ACT, PLAN_TO_ASK };

/*
 * Plans one ticket ahead.  GPUs that it gets are gone for later tickets.  Marks its owner as
 * watched if the owner's end could let our ticket start.  Returns 0 or a negative errno.
 */
static int plan_row_ahead(
	struct broker *broker, const struct queue_row *row, enum plan_purpose purpose)
{
	struct plan *plan = &broker->plan;
	struct plan_row theirs;
	struct verdict verdict;
	struct dependency_verdict held;
	int r;

	if (!broker_counts(broker, row))
		return 0;
	broker->state.is_first = false;
	/* r > 0: it can never start; it counts as held until its owner notices that and leaves */
	r = dependency_judge(&broker->book, row, false, &held);
	/* after the cut only the name of the ticket matters, which the book has noted now */
	if (r < 0 || plan->is_cut)
		return r < 0 ? r : 0;
	theirs = dependency_row(row->number, &row->ticket, &held);
	verdict = plan_next(plan, &theirs);
	if (verdict.kind == VERDICT_START && purpose == PLAN_TO_ACT &&
		passover_plan_start(&broker->passover, row, &verdict.gpus) < 0)
		return -ENOMEM;
	/* a head and a ticket that a limit holds back keep later tickets from starting, too */
	if (verdict.kind == VERDICT_START || verdict.kind == VERDICT_LIMIT ||
		verdict.kind == VERDICT_LEASED)
		return watch_owner(broker, row);
	return 0;
}

/* Our own row for the plan, as ->result.held holds it back. */
static struct plan_row own_row(const struct broker *broker)
{
	return dependency_row(broker->number, &broker->ticket, &broker->result.held);
}

/*
 * Plans all tickets ahead in their order, until no later one can start.  If ours is a singleton it
 * goes on after that: a ticket ahead with the same user and name holds ours back, even if it cannot
 * start itself.  Returns 0 or a negative errno.
 */
static int plan_ahead(struct broker *broker, enum plan_purpose purpose)
{
	struct plan *plan = &broker->plan;
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	broker->state.is_first = true;
	plan_begin(plan, &broker->view.facts);
	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0) {
		/* no later ticket can start: the rows up to our own would change nothing */
		if (!plan->is_cut && plan_can_be_cut(plan) && broker_counts(broker, &row))
			plan_cut(plan);
		if (plan->is_cut && !broker->ticket.request.is_singleton)
			return 0;
		r = plan_row_ahead(broker, &row, purpose);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

int broker_plan(
	struct broker *broker, const struct queue_row *own, struct verdict *ret_verdict)
{
	struct plan_row wanted;
	int r = find_hint(broker);

	dependency_begin(
		&broker->book, &broker->queue, &broker->view, broker->state.now_ms);
	if (r == 0)
		r = broker_mark_sent_back(broker);
	passover_plan_begin(&broker->passover);
	if (r == 0)
		r = plan_ahead(broker, PLAN_TO_ACT);
	if (r < 0)
		return r;
	/* our own ticket comes last: its singletons are the tickets judged before it */
	r = dependency_judge(&broker->book, own, true, &broker->result.held);
	if (r != 0)
		return r < 0 ? r : BROKER_HOPELESS;
	wanted = own_row(broker);
	*ret_verdict = plan_next(&broker->plan, &wanted);
	return 0;
}

int broker_replan(struct broker *broker, struct verdict *ret_verdict)
{
	struct plan_row wanted = own_row(broker);
	int r;

	dependency_again(&broker->book);
	r = plan_ahead(broker, PLAN_TO_ASK);
	if (r == 0)
		*ret_verdict = plan_next(&broker->plan, &wanted);
	return r;
}

bool broker_could_start(struct broker *broker)
{
	struct plan_row wanted = own_row(broker);

	plan_begin(&broker->plan, &broker->view.facts);
	return plan_could_start(&broker->plan, &wanted);
}

/* Whether the queue has, or may have, tickets behind our own. */
static bool has_others_behind(const struct broker *broker)
{
	return broker->queue.ranked_count || broker->number + 1 < broker->queue.end ||
	       broker->ticket.request.priority > 0;
}

void broker_ring_next(struct broker *broker)
{
	struct plan *plan = &broker->plan;
	struct queue_cursor cursor;
	struct queue_row row;

	if (!has_others_behind(broker) || plan->is_cut)
		return;
	/* the plan has our own row last, as started: go on from there */
	queue_order_begin(&cursor, broker_place(broker));
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0)
		;
	cursor.until = QUEUE_LAST;
	while (!plan_is_closed(plan) &&
		queue_next_in_order(&broker->queue, &cursor, &row) == 0) {
		struct dependency_verdict held;
		struct plan_row theirs;

		if (row.number == broker->number ||
			!broker_seems_to_count(broker, &row) ||
			dependency_judge(&broker->book, &row, false, &held) < 0)
			continue;
		theirs = dependency_row(row.number, &row.ticket, &held);
		if (plan_next(plan, &theirs).kind == VERDICT_START)
			bell_ring(broker->dir, row.ticket.owner.token);
	}
}
