/*
 * Passing over tickets with owners that do not act: planning as if they were not there.
 *
 * From outside, a stopped or frozen process looks like any other, so a waiter asks it.  The waiter
 * does so after 1 s in which only tickets ahead kept it from starting: it rings the bells of those
 * that have not taken a turn recently.  2 s later it passes over the tickets with unchanged
 * records, until a record changes.  They keep their place.  Each waiter judges for itself: two
 * waiters may have different plans, and still no GPU is given away twice.
 *
 * The owner of a ticket may also take turns and start nothing: its own nvidia-smi fails, it cannot
 * lock, or it spins.  A waiter passes over a ticket when for 3 s, without a break, its own plan
 * has started that ticket on one set of GPUs, and it could itself have taken that set.  The
 * owner writes into its ticket why it is stuck.  The ticket counts again after a turn of its owner
 * that leaves no such text.
 *
 * All of this is the memory of one process; a crash leaves nothing.
 */
#ifndef GPULEASE_PASSOVER_H
#define GPULEASE_PASSOVER_H

#include "queue.h"

/* The codes at the start of ->stuck of a ticket.  After the code come a colon and … */
#define STUCK_NVIDIA_SMI "nvidia-smi" /* why the nvidia-smi of the owner failed */
#define STUCK_TURN "turn"             /* nothing: the owner's turns come to no end */
#define STUCK_LOCK "lock"             /* the GPU; the owner could not lock its file */
#define STUCK_OWN "own"     /* the GPUs that only the job's own thresholds refuse */
#define STUCK_ERRNO "errno" /* its words; it ends each turn of the owner */
#define STUCK_GPU "gpu"     /* the GPU that the owner's nvidia-smi does not show */

/* A ticket that was asked or is passed over, with its turn number at that time. */
struct passover_ticket {
	uint64_t number, turn;
	bool is_stuck; /* passed over although its owner takes turns */
};

/* A ticket ahead that the plan of this waiter starts. */
struct passover_start {
	uint64_t number, turn;
	struct gpuset gpus;
	int64_t since_ms; /* since when, on these GPUs; 0: not judged yet */
	int64_t ready_ms; /* since when this waiter could take them itself; 0: it could not */
	bool is_planned; /* by the last plan */
};

struct passover_list {
	struct passover_ticket *all;
	size_t count, room;
};

struct passover {
	/* since when only tickets ahead keep this waiter from starting; 0: they do not */
	int64_t since_ms;
	int64_t asked_ms; /* when the bells were rung; 0: no answer is awaited */
	int64_t next_ms;  /* when bells may be rung again */
	struct passover_list asked, passed;
	struct passover_start *starts;
	size_t start_count, start_room;
};

#define PASSOVER_NONE ((struct passover){ .since_ms = 0 })

/* Whether the ticket is passed over.  If its owner has acted since, it no longer is. */
bool passover_includes(struct passover *passover, const struct queue_row *row);

/* CHANGED: tickets are passed over now that were not before, so the caller has to plan again. */
enum passover_outcome { PASSOVER_CHANGED = 1 };

/*
 * After a turn in which this waiter cannot start: rings the tickets ahead of @own, or judges their
 * answers, when it is time.  @could_start says that the waiter could start if all tickets ahead
 * were passed over.  Returns 0, PASSOVER_CHANGED, or a negative errno.  *@ret_wake_ms is when to
 * call again; INT64_MAX: no need.
 */
MUST_CHECK int passover_consider(struct passover *passover, struct queue *queue,
	struct queue_place own, bool could_start, int64_t now_ms, int64_t *ret_wake_ms);

/* Begins a plan of this waiter.  Then passover_plan_start() notes each ticket that it starts. */
void passover_plan_begin(struct passover *passover);
MUST_CHECK int passover_plan_start(struct passover *passover, const struct queue_row *row,
	const struct gpuset *gpus);

/* Whether the last plan starts ticket @number, or any ticket, on GPUs. */
bool passover_plans_start(const struct passover *passover, uint64_t number);
bool passover_plans_any(const struct passover *passover);

/*
 * Answers whether this waiter could take a set of GPUs itself: none of their files is locked, and a
 * recent good probe, which began after the last lease on them had ended, shows them free.
 */
struct passover_means {
	bool (*can_take)(void *arg, const struct gpuset *gpus);
	void *arg;
};

/*
 * After a turn in which this waiter cannot start: judges the tickets that its plan starts.  Returns
 * 0, PASSOVER_CHANGED, or a negative errno.  Sets *@ret_wants_probe if one of the tickets has not
 * started for 1 s: the caller then needs a fresh probe to judge it.
 */
MUST_CHECK int passover_consider_starts(struct passover *passover, bool could_start,
	const struct passover_means *means, int64_t now_ms, bool *ret_wants_probe,
	int64_t *ret_wake_ms);

/* Frees what @passover holds; part of broker_release(). */
void passover_release(struct passover *passover);

#endif
