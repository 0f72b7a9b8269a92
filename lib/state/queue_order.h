/*
 * The order of the queue: priority, the higher first, and then number.
 *
 * Nearly all tickets have priority 0 and stand in the file in their order.  The few others are
 * remembered in ->ranked, sorted.  queue_next_in_order() merges the two.
 */
#ifndef GPULEASE_QUEUE_ORDER_H
#define GPULEASE_QUEUE_ORDER_H

#include "queue.h"

/* Whether @a comes before @b.  Pure. */
bool queue_comes_before(struct queue_place a, struct queue_place b);

struct queue_place queue_place_of(const struct queue_row *row);

/*
 * A position in the order, and where to stop.  It is a place and not an index, so it stays right
 * when tickets are forgotten meanwhile.
 */
struct queue_cursor {
	struct queue_place next, until;
};

/*
 * Begins a walk over the tickets in the order that come before @until: the caller's own place, or
 * QUEUE_LAST.  The cursor is good for this turn.
 */
void queue_order_begin(struct queue_cursor *cursor, struct queue_place until);

/*
 * Finds the next ticket in the order that waits by its own word.  Reads no more than this row and
 * the records that it skips.  Returns 0 with @row set, QUEUE_END, or a negative errno.
 */
MUST_CHECK int queue_next_in_order(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row);

/* Forgets ticket @number, because its owner is dead. */
void queue_forget(struct queue *queue, uint64_t number);

/* For queue.c: remembers a ticket with a priority, once.  Returns 0 or -ENOMEM. */
MUST_CHECK int queue_rank(struct queue *queue, struct queue_place place);

/* For queue.c: forgets the tickets before @first, which the hint has passed. */
void queue_unrank_before(struct queue *queue, uint64_t first);

#endif
