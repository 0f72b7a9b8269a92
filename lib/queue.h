/*
 * The queue, read as a waiter needs it: from the hint on, in order, no further than matters.
 *
 * The order is priority, the higher first, and then number.  Nearly all tickets have priority
 * 0 and stand in the file in their order; the others, which are few, are remembered.
 *
 * What does not change is not read twice: each record is glanced at once, when it is new, for
 * controls and priorities (a ticket keeps its own).  Rows are decoded when they are reached.
 */
#ifndef GPULEASE_QUEUE_H
#define GPULEASE_QUEUE_H

#include "statedir.h"
#include "ticket.h"

enum { QUEUE_CHUNK = 64 };

struct queue_cancel {
	uint64_t ticket;
	uint32_t uid; /* who wants it */
};

/* A ticket that waits wants job @job sent back; the last time that it said so. */
struct queue_preempt {
	uint64_t job, by, number; /* the last is the control's */
	int64_t at_ms;
};

/* So many are remembered, the latest ones. */
enum { QUEUE_PREEMPTS_MAX = 1024 };

/* A place in the order. */
struct queue_place {
	int64_t priority;
	uint64_t number;
};

/* Behind every ticket. */
#define QUEUE_LAST ((struct queue_place){ .priority = INT64_MIN, .number = UINT64_MAX })

/* Unreadable records that are looked at again; in a file with more of them nothing is sure. */
enum { QUEUE_UNREAD_MAX = 32 };

struct queue {
	const struct statedir *dir;
	struct ticket_file file;
	struct ticket_header header;
	uint64_t from, end;    /* this turn's records */
	uint64_t scanned;      /* what is before this record has been glanced at */
	uint64_t first_broken; /* the first unreadable record from ->from on, 0: none */
	struct queue_cancel *cancels;
	size_t cancel_count, cancel_room;
	struct queue_preempt *preempts; /* whether they count is preempt.h's */
	size_t preempt_count, preempt_room;
	struct queue_place *ranked; /* tickets with a priority, in the order */
	size_t ranked_count, ranked_room;
	uint64_t unread[QUEUE_UNREAD_MAX]; /* records that could not be read yet */
	size_t unread_count;
	uint64_t chunk_at;
	size_t chunk_count;
	char chunk[QUEUE_CHUNK * RECORD_SIZE];
};

/* One ticket, as queue_at() returns it. */
struct queue_row {
	uint64_t number;
	bool is_waiting; /* by its own word, of this boot, and not cancelled */
	bool is_cancelled;
	uint32_t cancelled_by;
	struct ticket ticket;
};

/* Opens the ticket file.  0 or a negative errno. */
MUST_CHECK int queue_open(struct queue *queue, const struct statedir *dir);
void queue_release(struct queue *queue);

/* The same to look at alone: nothing is made or repaired, one need not be able to write. */
MUST_CHECK int queue_open_to_read(struct queue *queue, const struct statedir *dir);

/*
 * Begins a turn: reads the header, the end, the controls that are new, and the first rows
 * from the hint on, or from @own where the hint has passed it.  0; QUEUE_REPLACED: the file
 * was deleted, replaced or cut, open it again; or a negative errno.
 */
enum { QUEUE_REPLACED = 1 };
MUST_CHECK int queue_begin(struct queue *queue, uint64_t own);

/*
 * Finds the next ticket at or behind *@number and sets *@number behind it.  0 with @row set;
 * QUEUE_END; or a negative errno.
 */
enum { QUEUE_END = 1 };
MUST_CHECK int queue_next(struct queue *queue, uint64_t *number, struct queue_row *row);

/* Whether @a comes before @b.  Pure. */
bool queue_comes_before(struct queue_place a, struct queue_place b);

struct queue_place queue_place_of(const struct queue_row *row);

/* How far one has come in the order; it outlives what is forgotten meanwhile. */
struct queue_cursor {
	struct queue_place next, until;
};

/*
 * Begins to go through the tickets in the order, up to those that come before @until: one's
 * own place, or QUEUE_LAST.  Good for this turn.
 */
void queue_order_begin(struct queue_cursor *cursor, struct queue_place until);

/*
 * The next ticket in the order that waits by its own word.  0 with @row set; QUEUE_END; or a
 * negative errno.  No more is read than the row and what is passed over to get there.
 */
MUST_CHECK int queue_next_in_order(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row);

/* The owner of ticket @number is dead: it need not be remembered. */
void queue_forget(struct queue *queue, uint64_t number);

/* Reads ticket @number itself.  0; QUEUE_END: there is none (any more); -errno. */
MUST_CHECK int queue_find(struct queue *queue, uint64_t number, struct queue_row *row);

/*
 * Whether ticket @number has been cancelled by somebody who may, as far as this reader knows:
 * it sees the controls behind the hint of its first turn.  Then *@ret_uid is who.
 */
bool queue_is_cancelled(const struct queue *queue, uint64_t number, uint32_t owner_uid,
	uint32_t *ret_uid);

/*
 * For a process that is about to take a ticket: sweeps more than that ticket leaves.  A cursor
 * in the header goes round the pages that hold data, so several sweepers share the work.  Sweeps
 * one group of 64 records, once so many are there.  Behind the hint each record is read at every
 * turn, so there it sweeps further groups for 1 ms.
 *
 * Gives a page back to the file system unless a process may still look for a record in it: a
 * ticket whose owner lives, or has left a process that holds its FIFO; a control of such a ticket;
 * or a record that cannot be read, which may be just being rewritten.  First removes the FIFOs of
 * the dead tickets.  If many dead tickets remain, rings the first ticket that waits.  Failure costs
 * time only; a crash leaves a group for the next lap.
 */
void queue_sweep(struct queue *queue);

/* Whether a process that waits should sweep, by the end of the file as queue_begin() saw it. */
bool queue_has_backlog(const struct queue *queue);

/* Sweeps a backlog for 5 ms.  Whether there is more. */
bool queue_sweep_slice(struct queue *queue);

/* Moves the hint to @hint, which must be right.  Failure costs time only. */
void queue_move_hint(struct queue *queue, uint64_t hint);

#endif
