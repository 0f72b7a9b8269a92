/*
 * The sweep: gives the pages of dead tickets back to the file system, and removes their FIFOs.
 *
 * Processes that take a ticket sweep.  A cursor in the header goes round the pages that hold data,
 * so several sweepers share the work.  The sweep works on groups of 64 records.
 *
 * A page stays if a process may still look for one of its records: a ticket with an owner that
 * lives, or has left a process that holds the ticket's FIFO; a control of such a ticket that was
 * not obeyed yet; or a record that cannot be read, which its owner may be rewriting.  Of the
 * tickets that a living job has left for a later one, only the first stays.
 *
 * A failure costs time only.  A crash leaves a group for the next lap of the cursor.
 */
#ifndef GPULEASE_QUEUE_SWEEP_H
#define GPULEASE_QUEUE_SWEEP_H

#include "queue.h"

/*
 * For a process that is about to take a ticket: sweeps more than that ticket leaves.  Sweeps one
 * group, once so many records are there.  After the hint every waiter reads each record at every
 * turn, so in that part it sweeps further groups for 1 ms.  If many dead tickets remain, rings the
 * first ticket that waits.
 */
void queue_sweep(struct queue *queue);

/* Whether a process that waits should sweep, by the end of the file as queue_begin() saw it. */
bool queue_has_backlog(const struct queue *queue);

/* Sweeps a backlog for 5 ms.  Returns whether more is left. */
bool queue_sweep_slice(struct queue *queue);

#endif
