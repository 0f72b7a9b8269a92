/*
 * Plans that take no GPUs: what a request would come to, when the job would start, how many tickets
 * are ahead.  Declared in broker.h.
 */
#include <errno.h>

#include "broker_parts.h"
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
	ticket->request = *request;
	ticket->state = broker_first_state(request);
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
		broker_tell_stuck(broker, false);
		if (r != 0 || broker->result.verdict.kind != VERDICT_START ||
			broker->state.now_ms >= until_ms || !broker_wants_links(broker))
			return r == 0 ? broker_foresee_preemption(broker) : r;
		broker->state.wake_ms = INT64_MAX;
		r = broker_wait(broker, until_ms);
	}
	return r;
}

int64_t broker_estimate(struct broker *broker)
{
	struct plan_row rows[ESTIMATE_ROWS];
	int64_t starts_ms[ESTIMATE_ROWS];
	struct queue_cursor cursor;
	struct queue_row row;
	struct dependency_verdict held;
	size_t count = 0;
	int r;

	if (broker->result.held.hold != DEPENDENCY_NONE)
		return 0;
	dependency_again(&broker->book);
	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0) {
		if (count == ESTIMATE_ROWS - 1)
			return 0; /* too many tickets ahead to estimate */
		if (!broker_counts(broker, &row))
			continue;
		r = dependency_judge(&broker->book, &row, false, &held);
		if (r < 0)
			return 0;
		rows[count] = dependency_row(row.number, &row.ticket, &held);
		/* otherwise the next row overwrites it */
		count += estimate_wants(&rows[count]);
	}
	rows[count++] = plan_row_of(broker->number, &broker->ticket);
	if (r < 0 || estimate_starts(&broker->view.facts, rows, count, starts_ms) < 0)
		return 0;
	return starts_ms[count - 1];
}

unsigned broker_position(struct broker *broker)
{
	unsigned position = 1;
	struct queue_cursor cursor;
	struct queue_row row;

	queue_order_begin(&cursor, broker_place(broker));
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0) {
		struct liveness *life;

		if (broker_judge_waiting(broker, &row, &life) < 0)
			return 0;
		position += life != NULL;
	}
	return position;
}
