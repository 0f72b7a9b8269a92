/*
 * Passing over tickets whose owners do not act.
 *
 * A stopped or frozen process looks like any other from outside, so it is asked: who could
 * start but for tickets ahead of it for 1 s rings the bells of all that have not taken a
 * turn lately, and passes over those whose record is the same 2 s later, until it changes.
 * They keep their place.  Local to each waiter: safety never rests on two plans being equal.
 */
#ifndef GPULEASE_PASSOVER_H
#define GPULEASE_PASSOVER_H

#include "queue.h"

struct passover_ticket {
	uint64_t number, turn;
};

struct passover_list {
	struct passover_ticket *all;
	size_t count, room;
};

struct passover {
	int64_t since_ms; /* since when only tickets ahead keep us; 0: something else does */
	int64_t asked_ms; /* when the bells were rung; 0: no answer is awaited */
	int64_t next_ms;  /* not before this is anybody asked again */
	struct passover_list asked, passed;
};

#define PASSOVER_NONE ((struct passover){ .since_ms = 0 })

/* Whether the ticket is passed over; one that has acted since is not, from now on. */
bool passover_includes(struct passover *passover, const struct queue_row *row);

/*
 * After a turn in which we cannot start: @could_start says that we could were all tickets
 * ahead, those before @own in the order, passed over.  Asks, or judges the answers, when it is
 * time.  PASSOVER_CHANGED: some are passed over now, plan again; 0; or a negative errno.
 * *@ret_wake_ms is when to come back, INT64_MAX: no need.
 */
enum { PASSOVER_CHANGED = 1 };
MUST_CHECK int passover_consider(struct passover *passover, struct queue *queue,
	struct queue_place own, bool could_start, int64_t now_ms, int64_t *ret_wake_ms);

void passover_release(struct passover *passover);

#endif
