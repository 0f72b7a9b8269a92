/*
 * The ticket file as a waiter reads it: from the hint on, and decoded only as far as the waiter
 * needs.
 *
 * What does not change is not read twice.  Each record is glanced at once, when it is new, for
 * controls and places; a ticket keeps its priority and its order for life.  A record is decoded
 * when the walk over the queue reaches it.  queue_order.h walks in the order of the queue,
 * queue_sweep.h removes what dead tickets leave.
 */
#ifndef GPULEASE_QUEUE_H
#define GPULEASE_QUEUE_H

#include "statedir.h"
#include "ticket.h"

/* Records that are read at once. */
enum { QUEUE_CHUNK = 64 };

/*
 * A request to cancel, to release or to requeue a job.  Each is kept once, however often it was
 * made.
 */
struct queue_demand {
	uint64_t ticket;
	uint64_t
		by; /* CONTROL_REQUEUE: the ticket of the latest attempt that is to end */
	uint32_t uid;  /* of the user that asks for it */
	uint32_t verb; /* CONTROL_CANCEL, CONTROL_RELEASE, CONTROL_REQUEUE */
};

/* A waiting ticket asks that job @job be sent back.  Only its latest request is kept. */
struct queue_preempt {
	uint64_t job, by, number; /* number: of the control record */
	int64_t at_ms;
};

/* A request for another priority of one job. */
struct queue_wish {
	uint64_t
		job; /* set by the caller, and then ->uid: whose requests are remembered */
	uint32_t uid;
	uint64_t
		number; /* the latest request: the number of the control; 0: there is none */
	int64_t priority;
};

/* The most preemption requests that are remembered; a further one replaces the oldest. */
enum { QUEUE_PREEMPTS_MAX = 1024 };

/*
 * A place in the order, see queue_order.h.  A ticket with ->order_ms has an order of its own; the
 * other tickets are plain.
 */
struct queue_place {
	int64_t priority;
	uint64_t number;
	int64_t order_ms; /* CLOCK_BOOTTIME; 0: a plain ticket */
	int64_t since_ms; /* when a plain ticket was taken */
};

/* The place after every ticket. */
#define QUEUE_LAST                     \
	((struct queue_place){         \
		.priority = INT64_MIN, \
		.number = UINT64_MAX,  \
		.since_ms = INT64_MAX, \
	})

/*
 * The most unreadable records that are looked at again every turn.  If the file has more, controls
 * and priorities in the others are not known.
 */
enum { QUEUE_UNREAD_MAX = 32 };

struct queue {
	const struct statedir *dir;
	struct ticket_file file;
	struct ticket_header header;
	uint64_t from, end;    /* this turn's records */
	uint64_t scanned;      /* every record before this one has been glanced at */
	uint64_t first_broken; /* the first unreadable record from ->from on, 0: none */
	struct queue_demand *demands;
	size_t demand_count, demand_room;
	struct queue_preempt *preempts; /* preempt.h judges which of them count */
	size_t preempt_count, preempt_room;
	struct queue_wish wish;
	/* tickets with a priority or an order of their own; queue_order.c sorts them */
	struct queue_place *ranked;
	size_t ranked_count, ranked_room;
	uint64_t unread[QUEUE_UNREAD_MAX]; /* records that could not be read yet */
	size_t unread_count;
	uint64_t chunk_at; /* the first record in ->chunk */
	size_t chunk_count;
	char chunk[QUEUE_CHUNK * RECORD_SIZE];
};

/* One ticket of the queue. */
struct queue_row {
	uint64_t number;
	bool is_waiting; /* by its own word, of this boot, and not cancelled */
	bool is_cancelled;
	uint32_t cancelled_by;
	struct ticket ticket;
};

/* END: there is no further ticket.  REPLACED: the file was deleted, replaced or cut. */
enum queue_outcome { QUEUE_END = 1, QUEUE_REPLACED };

/* Opens the ticket file.  Returns 0 or a negative errno. */
MUST_CHECK int queue_open(struct queue *queue, const struct statedir *dir);
void queue_release(struct queue *queue);

/* Opens the ticket file for reading.  Makes and repairs nothing, and needs no right to write. */
MUST_CHECK int queue_open_to_read(struct queue *queue, const struct statedir *dir);

/*
 * Begins a turn: reads the header, the end, the controls that are new, and the first records from
 * the hint on, or from @own if the hint has passed it.  Returns 0, QUEUE_REPLACED (the caller
 * opens the file again), or a negative errno.
 */
MUST_CHECK int queue_begin(struct queue *queue, uint64_t own);

/* As queue_begin(), and sets ->wish to the newest request for the priority of @job of user @uid. */
MUST_CHECK int queue_begin_for_wish(struct queue *queue, uint64_t job, uint32_t uid);

/*
 * Finds the first ticket from *@number on, in the order of the file, and sets *@number to the
 * number after it.  Returns 0 with @row set, QUEUE_END, or a negative errno.
 */
MUST_CHECK int queue_next(struct queue *queue, uint64_t *number, struct queue_row *row);

/* Reads ticket @number itself.  Returns 0, QUEUE_END (it is void or no ticket), or -errno. */
MUST_CHECK int queue_find(struct queue *queue, uint64_t number, struct queue_row *row);

/*
 * Whether a user that may do so has cancelled ticket @number, as far as this reader knows: it sees
 * the controls after the hint of its first turn.  Sets *@ret_uid to the user if it returns true.
 */
bool queue_is_cancelled(const struct queue *queue, uint64_t number, uint32_t owner_uid,
	uint32_t *ret_uid);

/* Whether a user that may do so has released ticket @number; as queue_is_cancelled(). */
bool queue_is_released(const struct queue *queue, uint64_t number, uint32_t owner_uid);

/*
 * Whether a user that may do so has asked that job @number goes back into the queue from its
 * attempt with ticket @by; as queue_is_cancelled().
 */
bool queue_is_requeued(
	const struct queue *queue, uint64_t number, uint64_t by, uint32_t owner_uid);

/*
 * Asks for what @control says (->verb, ->ticket, ->by, ->priority) in the name of this user.
 * Appends no second request of one user for one thing while the first is pending: no process may
 * act yet, and the sweep keeps what is pending.  A request is pending if it stands after ticket
 * @latest, the latest of the job.  Two processes that ask at the same time may append both.
 * Returns 0, QUEUE_ASKED: a request is pending, or a negative errno.
 */
enum queue_ask_outcome { QUEUE_ASKED = 1 };
MUST_CHECK int queue_ask(
	struct queue *queue, const struct control *control, uint64_t latest);

/*
 * Moves the hint to @hint.  The caller makes sure that no waiting ticket with a live owner lies
 * before it.  A failure costs time only.
 */
void queue_move_hint(struct queue *queue, uint64_t hint);

/* For queue_order.c: sets all of @row but ->ticket, which is read already. */
void queue_judge_row(const struct queue *queue, uint64_t number, struct queue_row *row);

/* For queue_order.c: notes that record @number cannot be read in this turn. */
void queue_note_broken(struct queue *queue, uint64_t number);

#endif
