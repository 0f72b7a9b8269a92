#include "broker_parts.h"
#include "estimate.h"

int64_t broker_estimate(struct broker *broker)
{
	struct plan_row rows[ESTIMATE_ROWS];
	int64_t starts_ms[ESTIMATE_ROWS];
	struct queue_cursor cursor;
	struct queue_row row;
	struct held held;
	size_t count = 0;
	int r;

	if (broker->held.hold != HOLD_NONE)
		return 0;
	hold_again(&broker->book);
	queue_order_begin(&cursor, broker_place(broker));
	while ((r = queue_next_in_order(&broker->queue, &cursor, &row)) == 0) {
		if (count == ESTIMATE_ROWS - 1)
			return 0;
		if (!broker_counts(broker, &row))
			continue;
		r = hold_judge(&broker->book, &row, false, &held);
		if (r < 0)
			return 0;
		rows[count] = hold_row(row.number, &row.ticket, &held);
		count += estimate_wants(&rows[count]);
	}
	rows[count++] = plan_row_of(broker->number, &broker->ticket);
	if (r < 0 || estimate_starts(&broker->view.facts, rows, count, starts_ms) < 0)
		return 0;
	return starts_ms[count - 1];
}
