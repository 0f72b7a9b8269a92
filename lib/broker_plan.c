#include <errno.h>

#include "broker_parts.h"

/* An unreadable record that stays so is no copy half done. */
enum { BROKEN_PATIENCE_MS = 1000 };

/* *@ret is the life of a waiting ticket's owner; NULL: it does not wait (any more). */
static int waiting_life(
	struct broker *broker, const struct queue_row *row, struct life **ret)
{
	struct life *life = NULL;

	*ret = NULL;
	if (!row->is_waiting)
		return 0;
	life = lives_judge(
		&broker->view.lives, &row->ticket.owner, false, broker->now_ms);
	if (!life)
		return -ENOMEM;
	if (!life_is_dead(life))
		*ret = life;
	return 0;
}

/* The hint never passes a record that may be a live ticket, half rewritten. */
static void bound_hint(struct broker *broker)
{
	uint64_t broken = broker->queue.first_broken;

	if (broken != broker->broken_ticket) {
		broker->broken_ticket = broken;
		broker->broken_since_ms = broker->now_ms;
	}
	if (broken && broker->hint > broken &&
		broker->now_ms - broker->broken_since_ms < BROKEN_PATIENCE_MS)
		broker->hint = broken;
}

struct queue_place broker_place(const struct broker *broker)
{
	return (struct queue_place){ .priority = broker->ticket.request.priority,
		.number = broker->number };
}

/* The hint may be moved to the first ticket that waits, whatever its priority. */
static int find_hint(struct broker *broker)
{
	uint64_t number = broker->queue.from;
	struct queue_row row;
	int r = QUEUE_END;

	broker->hint = number;
	while ((r = queue_next(&broker->queue, &number, &row)) == 0 &&
		row.number < broker->number) {
		struct life *life;

		r = waiting_life(broker, &row, &life);
		if (r < 0 || life)
			break;
		broker->hint = number;
	}
	if (r < 0)
		return r;
	if (r == QUEUE_END || row.number >= broker->number)
		broker->hint = broker->number;
	bound_hint(broker);
	return 0;
}

static int watch_other(struct broker *broker, const struct queue_row *row)
{
	struct life *life = lives_judge(
		&broker->view.lives, &row->ticket.owner, false, broker->now_ms);

	if (!life)
		return -ENOMEM;
	life->is_watched = true;
	return 0;
}

bool broker_counts(struct broker *broker, const struct queue_row *row)
{
	const struct snapshot_lease *lease;
	struct life *life;

	if (waiting_life(broker, row, &life) < 0)
		return true;
	if (!life) {
		queue_forget(&broker->queue, row->number);
		return false;
	}
	if (passover_includes(&broker->passover, row))
		return false;
	/* its owner was stopped between its lease and its ticket */
	lease = snapshot_find_token(&broker->view, row->ticket.owner.token);
	return !lease || lease->is_over;
}

/* Only the starts of a turn's own plan, PLAN_TO_ACT, are judged; see passover.h. */
enum plan_purpose { PLAN_TO_ACT, PLAN_TO_ASK };

/* One that comes before us: what it gets is gone, and its end may be what we wait for. */
static int plan_other(
	struct broker *broker, const struct queue_row *row, enum plan_purpose purpose)
{
	struct plan *plan = &broker->plan;
	struct plan_row theirs;
	struct verdict verdict;
	struct held held;
	int r;

	if (!broker_counts(broker, row))
		return 0;
	broker->is_first = false;
	/* for ever, too, until it notices */
	r = hold_judge(&broker->book, row, false, &held);
	if (r < 0 || plan->is_cut) /* then it was for the name alone */
		return r < 0 ? r : 0;
	theirs = hold_row(row->number, &row->ticket, &held);
	verdict = plan_next(plan, &theirs);
	if (verdict.kind == VERDICT_START && purpose == PLAN_TO_ACT &&
		passover_plan_start(&broker->passover, row, &verdict.gpus) < 0)
		return -ENOMEM;
	/* a head, and a ticket held back by a limit, hold back tickets behind them */
	if (verdict.kind == VERDICT_START || verdict.kind == VERDICT_LIMIT ||
		verdict.kind == VERDICT_LEASED)
		return watch_other(broker, row);
	return 0;
}

static struct plan_row own_row(const struct broker *broker)
{
	return hold_row(broker->number, &broker->ticket, &broker->held);
}

/*
 * All that come before us, in the order, until none can start any more; the book is begun.  By
 * its name a ticket holds us also where it cannot start, and where we need no GPU to do so.
 */
static int plan_ahead(struct broker *broker, enum plan_purpose purpose)
{
	struct plan *plan = &broker->plan;
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	broker->is_first = true;
	plan_begin(plan, &broker->view.facts);
	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0) {
		if (!plan->is_cut && plan_can_be_cut(plan) && broker_counts(broker, &row))
			plan_cut(plan);
		if (plan->is_cut && !broker->ticket.request.is_singleton)
			return 0;
		r = plan_other(broker, &row, purpose);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

int broker_plan(struct broker *broker, const struct queue_row *own, struct verdict *ret)
{
	struct plan_row wanted;
	int r = find_hint(broker);

	hold_begin(&broker->book, &broker->queue, &broker->view, broker->now_ms);
	if (r == 0)
		r = broker_mark_sent_back(broker);
	passover_plan_begin(&broker->passover);
	if (r == 0)
		r = plan_ahead(broker, PLAN_TO_ACT);
	if (r < 0)
		return r;
	r = hold_judge(&broker->book, own, true, &broker->held);
	if (r != 0)
		return r < 0 ? r : BROKER_HOPELESS;
	wanted = own_row(broker);
	*ret = plan_next(&broker->plan, &wanted);
	return 0;
}

int broker_replan(struct broker *broker, struct verdict *ret)
{
	struct plan_row wanted = own_row(broker);
	int r;

	hold_again(&broker->book);
	r = plan_ahead(broker, PLAN_TO_ASK);
	if (r == 0)
		*ret = plan_next(&broker->plan, &wanted);
	return r;
}

bool broker_could_start(struct broker *broker)
{
	struct plan_row wanted = own_row(broker);

	plan_begin(&broker->plan, &broker->view.facts);
	return plan_could_start(&broker->plan, &wanted);
}

unsigned broker_position(struct broker *broker)
{
	unsigned position = 1;
	struct queue_cursor cursor;
	struct queue_row row;

	queue_order_begin(&cursor, broker_place(broker));
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0) {
		struct life *life;

		if (waiting_life(broker, &row, &life) < 0)
			return 0;
		position += life != NULL;
	}
	return position;
}

/*
 * How many tickets of user @uid, UINT32_MAX for all users, wait before ticket @before; counted
 * no further than @most.  Fewer where the queue cannot be read.
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
	/* mostly there is no need to look at them */
	if (end < number || end - number < most)
		return 0;
	while (count < most && queue_next(&broker->queue, &number, &row) == 0 &&
		row.number < end) {
		struct life *life;

		if (!row.is_waiting || (uid != UINT32_MAX && row.ticket.owner.uid != uid))
			continue;
		if (waiting_life(broker, &row, &life) < 0)
			break;
		count += life != NULL;
	}
	return count;
}

int broker_check_quota(struct broker *broker, uint64_t before, struct why *why)
{
	const struct ticket *ticket = &broker->ticket;
	uint32_t uid = ticket->owner.uid;
	unsigned own = uid ? broker->max_waiting : 0, all = broker->all_waiting;

	if (ticket->state != TICKET_WAITING)
		return 0;
	if (own && count_waiting(broker, uid, before, own) >= own)
		why_set(why,
			"max-waiting allows no more of your jobs in the queue than %u",
			own);
	else if (all && count_waiting(broker, UINT32_MAX, before, all) >= all)
		why_set(why, "all-waiting allows no more jobs in the queue than %u", all);
	else
		return 0;
	return -EDQUOT;
}

int broker_foresee(struct broker *broker, const struct request *request, int64_t until_ms,
	struct why *why)
{
	struct ticket *ticket = &broker->ticket;
	struct queue_row own = { .is_waiting = true };
	int r = hold_check(&broker->queue, request, why);

	if (r == 0)
		r = owner_self(&ticket->owner);
	ticket->request = *request;
	ticket->state = broker_first_state(request);
	if (r == 0)
		r = broker_check_quota(broker, UINT64_MAX, why);
	while (r == 0) {
		r = queue_begin(&broker->queue, 0);
		if (r != 0)
			return r < 0 ? r : -EAGAIN;
		broker->number = own.number = broker->queue.end;
		own.ticket = *ticket;
		r = broker_survey(broker);
		if (r == 0)
			r = broker_plan(broker, &own, &broker->verdict);
		if (r == 0 && broker->verdict.kind == VERDICT_START) {
			int left = snapshot_look(
				&broker->view, &broker->verdict.gpus, broker->now_ms);

			if (left > 0)
				continue; /* not over, and the plan is another */
			r = left;
		}
		if (r != 0 || broker->verdict.kind != VERDICT_START ||
			broker->now_ms >= until_ms || !broker_wants_links(broker))
			return r;
		broker->wake_ms = INT64_MAX;
		r = broker_wait(broker, until_ms);
	}
	return r;
}
