/*
 * Plans that take no GPUs: what a request would come to, when the job would start, how many tickets
 * are ahead.  Declared in broker.h.
 */
#include <errno.h>

#include "broker_parts.h"
#include "clock.h"
#include "queue_order.h"
#include "estimate.h"

int broker_foresee(struct broker *broker, const struct request *request, int64_t until_ms,
	struct why *why)
{
	struct ticket *ticket = &broker->ticket;
	struct queue_row own = { .is_waiting = true };
	int r = dependency_check(&broker->queue, request, why);

	if (r == 0)
		r = owner_self(&ticket->owner);
	broker_set_request(broker, request);
	broker_first_state(broker);
	ticket->since_ms = clock_boot_ms();
	if (r == 0)
		r = broker_check_quota(broker, UINT64_MAX, why);
	/* again after leftover processes were found, and once the links of the GPUs are known */
	while (r == 0) {
		r = queue_begin(&broker->queue, 0);
		if (r != 0)
			return r < 0 ? r : -EAGAIN;
		/* as if our ticket were the next to be appended */
		broker->number = own.number = broker->queue.end;
		own.ticket = *ticket;
		r = broker_survey(broker);
		if (r == 0)
			r = broker_plan(broker, &own, &broker->result.verdict);
		if (r == 0 && broker->result.verdict.kind == VERDICT_START) {
			int left = snapshot_look(&broker->view,
				&broker->result.verdict.gpus, broker->state.now_ms);

			if (left > 0)
				continue; /* a lease is not over: plan again */
			r = left;
		}
		/* a job that has to wait takes its place by fair-share first */
		if (r == 0 && broker_competes(broker, broker->result.verdict.kind)) {
			broker->result.share = broker_share_of(&broker->input.share,
				&broker->queue, &broker->view, ticket->owner.uid, 0);
			ticket->late_ms = broker->result.share.late_ms;
			if (ticket->late_ms)
				ticket->order_ms = ticket->since_ms + ticket->late_ms;
			broker->state.is_late = true;
			continue;
		}
		broker_tell_stuck(broker, false);
		if (r != 0 || broker->result.verdict.kind != VERDICT_START ||
			broker->state.now_ms >= until_ms || !broker_wants_links(broker))
			return r == 0 ? broker_foresee_preemption(broker) : r;
		broker->state.wake_ms = INT64_MAX;
		r = broker_wait(broker, until_ms);
	}
	return r;
}

/* With more tickets ahead nothing is foretold, since each waiter that does so reads the history. */
enum { FORETELL_AHEAD = 15 };

/* The rows of the tickets ahead and, at last, of our own. */
struct rows_ahead {
	size_t count, most;
	struct usual_kind *kinds; /* NULL: not wanted */
	struct plan_row rows[ESTIMATE_ROWS];
};

static void rows_add(
	struct rows_ahead *ahead, const struct plan_row *row, const struct ticket *ticket)
{
	ahead->rows[ahead->count] = *row;
	if (ahead->kinds)
		ahead->kinds[ahead->count] = foretell_kind(ticket);
	ahead->count++;
}

/* Returns false if our start cannot be estimated. */
static bool rows_find(struct broker *broker, struct rows_ahead *ahead)
{
	struct plan_row own = plan_row_of(broker->number, &broker->ticket);
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	if (broker->result.held.hold != DEPENDENCY_NONE)
		return false;
	dependency_again(&broker->book);
	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0) {
		struct dependency_verdict held;
		struct plan_row theirs;

		if (ahead->count == ahead->most)
			return false; /* too many tickets ahead */
		if (!broker_seems_to_count(broker, &row))
			continue;
		r = dependency_judge(&broker->book, &row, false, &held);
		if (r < 0)
			return false;
		theirs = dependency_row(row.number, &row.ticket, &held);
		if (estimate_wants(&theirs))
			rows_add(ahead, &theirs, &row.ticket);
	}
	rows_add(ahead, &own, &broker->ticket);
	return r >= 0;
}

int64_t broker_estimate(struct broker *broker)
{
	struct rows_ahead ahead; /* mostly not touched */
	int64_t starts_ms[ESTIMATE_ROWS];

	ahead.count = 0;
	ahead.most = ESTIMATE_ROWS - 1;
	ahead.kinds = NULL;
	if (!rows_find(broker, &ahead) || estimate_starts(&broker->view.facts, ahead.rows,
						  ahead.count, starts_ms) < 0)
		return 0;
	return starts_ms[ahead.count - 1];
}

void broker_foretell(struct broker *broker, struct foretold *ret)
{
	struct usual_kind kinds[FORETELL_AHEAD + 1];
	struct foretold all[FORETELL_AHEAD + 1];
	struct rows_ahead ahead;

	ahead.count = 0;
	ahead.most = FORETELL_AHEAD;
	ahead.kinds = kinds;
	*ret = (struct foretold){ .runs = 0 };
	if (rows_find(broker, &ahead) &&
		foretell_starts(&broker->view, broker->state.now_ms, ahead.rows, kinds,
			ahead.count, all) == 0)
		*ret = all[ahead.count - 1];
}

unsigned broker_position(struct broker *broker)
{
	unsigned position = 1;
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0)
		position += broker_seems_to_wait(broker, &row);
	return r < 0 ? 0 : position;
}
