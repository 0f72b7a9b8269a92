/*
 * Between the parts of the queue: queue.c reads the file, queue_order.c knows which tickets
 * do not stand in it in their order, queue_controls.c what others want of tickets.
 */
#ifndef GPULEASE_QUEUE_PARTS_H
#define GPULEASE_QUEUE_PARTS_H

#include "queue.h"

/* Remembers a ticket with a priority, once.  0, or -ENOMEM. */
MUST_CHECK int queue_rank(struct queue *queue, struct queue_place place);

/* Remembers what record @number, a control, wants.  0, or -ENOMEM. */
MUST_CHECK int queue_note_control(
	struct queue *queue, uint64_t number, const struct control *control);

/* Forgets those before ticket @first: the hint has passed them. */
void queue_unrank_before(struct queue *queue, uint64_t first);

/* Fills in what @row, whose ticket is read, says beyond it. */
void queue_judge_row(const struct queue *queue, uint64_t number, struct queue_row *row);

/* Record @number cannot be read in this turn. */
void queue_note_broken(struct queue *queue, uint64_t number);

#endif
