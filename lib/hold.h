/*
 * What holds a ticket back that is no lack of GPUs: jobs that have to end first, by their ids
 * (after, after_ok), or by their user and name (is_singleton); and the moment before which an
 * attempt is not to be made.  Every waiter judges all tickets so, each for itself; one that is
 * held takes nothing and is in nobody's way.
 *
 * Nobody waits for himself, by way of whom he waits for: jobs named by their ids are older, and
 * by its name a ticket is held by jobs that run and by tickets before it in the order alone, of
 * those only by such as wait for no job by its id.
 *
 * Whether and how a job has ended is outcome.h's.  Nothing is written: a crash leaves nothing.
 */
#ifndef GPULEASE_HOLD_H
#define GPULEASE_HOLD_H

#include "namesake.h"
#include "policy.h"

/* The first ticket in the order of one user and name, and its job. */
struct hold_name {
	uint64_t hash, number, job;
	uint32_t uid, next; /* in the same list, 1 + its index; 0: none */
};

enum { HOLD_LISTS = 256 };

/* What is known: of the jobs from turn to turn, of the names in one turn.  Zeroed: nothing. */
struct hold_book {
	struct outcome_look look; /* ->wake_ms: when to judge one's own ticket again */
	struct outcome *jobs;     /* by id */
	size_t job_count, job_room;
	struct hold_name *names;
	size_t name_count, name_room;
	uint32_t lists[HOLD_LISTS];
	struct namesakes namesakes;
};

/* What came of one ticket. */
struct held {
	enum hold hold;
	uint64_t by; /* HOLD_AFTER, HOLD_SINGLETON: the job; for HOLD_FAILED … as well */
	int status;  /* HOLD_FAILED: that of the job */
	int64_t until_ms; /* HOLD_UNTIL: CLOCK_BOOTTIME */
};

/*
 * Before joining: whether the jobs that @request is to wait for have ever been.  0; -ENOENT
 * with the reason in @why: one has not; -EINVAL, likewise: that is no list of ids; or another
 * negative errno.
 */
MUST_CHECK int hold_check(
	struct queue *queue, const struct request *request, struct why *why);

/*
 * Begins a turn: after queue_begin(), snapshot_read() and lives_begin(), which it rests on.
 * What was learnt of jobs that nobody was judged by since the last one is forgotten.
 */
void hold_begin(struct hold_book *book, struct queue *queue, struct snapshot *view,
	int64_t now_ms);

/* Begins to go through the tickets once more in the same turn; nothing is forgotten. */
void hold_again(struct hold_book *book);

/*
 * Judges the next ticket in the order, of those that count: neither dead nor passed over.
 * With @is_own the lives it waits for are watched; so one's own is judged in every turn, the
 * last of all, and before lives_end().  @row is as it was read: names are cut there.
 *
 * 0 with @ret; HOLD_FAILED: it never may start, job ->by has ended with another status than 0;
 * HOLD_UNRECORDED: nor this one, how job ->by ended is recorded nowhere (and has not been for
 * a moment); or a negative errno.  In the last two cases @ret says HOLD_STATUS: until its owner
 * leaves it counts as held.
 */
enum { HOLD_FAILED = 1, HOLD_UNRECORDED = 2 };
MUST_CHECK int hold_judge(struct hold_book *book, const struct queue_row *row,
	bool is_own, struct held *ret);

/* The row for the plan of @ticket, number @number, of which that came.  Pure. */
struct plan_row hold_row(
	uint64_t number, const struct ticket *ticket, const struct held *held);

void hold_release(struct hold_book *book);

#endif
