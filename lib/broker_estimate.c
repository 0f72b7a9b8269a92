#include "broker_parts.h"
#include "estimate.h"

static bool is_held(const struct ticket *ticket, int64_t now_ms)
{
	const struct request *request = &ticket->request;

	return request->after[0] || request->after_ok[0] || request->is_singleton ||
	       ticket->not_before_ms > now_ms;
}

int64_t broker_estimate(struct broker *broker)
{
	struct plan_row rows[ESTIMATE_ROWS];
	int64_t starts_ms[ESTIMATE_ROWS];
	struct queue_cursor cursor;
	struct queue_row row;
	size_t count = 0;
	int r;

	if (broker->held.hold != HOLD_NONE)
		return 0;
	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0) {
		if (count == ESTIMATE_ROWS - 1)
			return 0;
		/* who comes after another job, or is tried again later, holds up nobody */
		if (broker_counts(broker, &row) && !is_held(&row.ticket, broker->now_ms))
			rows[count++] = plan_row_of(row.number, &row.ticket);
	}
	rows[count++] = plan_row_of(broker->number, &broker->ticket);
	if (r < 0 || estimate_starts(&broker->view.facts, rows, count, starts_ms) < 0)
		return 0;
	return starts_ms[count - 1];
}
