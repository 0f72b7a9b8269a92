/*
 * The order of the queue: priority, the higher first; then the time; then the number.
 *
 * Plain tickets of one priority stand in the order of their numbers, that of their arrival.
 * A ticket with an order of its own (->order_ms) stands before the first waiting plain ticket that
 * was taken later than that.  Two of these stand in the order of ->order_ms, then of their numbers.
 *
 * Nearly all tickets have priority 0 and are plain, and stand in the file in their order.  The
 * others are remembered in ->ranked, sorted.  queue_next_in_order() merges the two.
 */
#ifndef GPULEASE_QUEUE_ORDER_H
#define GPULEASE_QUEUE_ORDER_H

#include "queue.h"

/*
 * Whether @a comes before @b, if there were no other tickets.  Another ticket can change this only
 * if it is plain, as one of the two is, and has a lower number and yet a later time than that: see
 * "Decisions" in lib/README.md.  Pure.
 */
bool queue_comes_before(struct queue_place a, struct queue_place b);

struct queue_place queue_place_of(const struct queue_row *row);

/*
 * A position in the order, and where to stop.  It is a place and not an index, so it stays right
 * when tickets are forgotten meanwhile.
 */
struct queue_cursor {
	struct queue_place plain, ordered; /* the next of either kind, of one priority */
	struct queue_place until;
};

/*
 * Begins a walk over the tickets in the order that come before @until: the caller's own place, or
 * QUEUE_LAST.  The cursor is good for this turn.
 */
void queue_order_begin(struct queue_cursor *cursor, struct queue_place until);

/*
 * Finds the next ticket in the order that waits by its own word.  Reads no more than this row, the
 * records that it skips, and the next plain ticket.  Returns 0 with @row set, QUEUE_END, or a
 * negative errno.  After QUEUE_END the caller may set ->until to a later place, and go on there.
 */
MUST_CHECK int queue_next_in_order(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row);

/* Forgets ticket @number, because its owner is dead. */
void queue_forget(struct queue *queue, uint64_t number);

/*
 * For queue.c: remembers a ticket with a priority or an order of its own, once.  Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int queue_rank(struct queue *queue, struct queue_place place);

/* For queue.c: forgets the tickets before @first, which the hint has passed. */
void queue_unrank_before(struct queue *queue, uint64_t first);

#endif
