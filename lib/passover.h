/*
 * Passing over tickets whose owners do not act.
 *
 * A stopped or frozen process looks like any other from outside, so it is asked: who could
 * start but for tickets ahead of it for 1 s rings the bells of all that have not taken a
 * turn lately, and passes over those whose record is the same 2 s later, until it changes.
 * They keep their place.  Local to each waiter: safety never rests on two plans being equal.
 *
 * A ticket's owner may also take turns and start nothing: its own nvidia-smi fails, it cannot
 * lock, or it spins.  A waiter passes over a ticket when for 3 s, without a break, its own plan
 * has started that ticket on one set of GPUs, and it could itself have taken that set.  The
 * owner writes into its ticket why it is stuck.  The ticket counts again after a turn of its owner
 * that leaves no such text.
 */
#ifndef GPULEASE_PASSOVER_H
#define GPULEASE_PASSOVER_H

#include "queue.h"

/*
 * The codes at the start of ->stuck of a ticket.  A colon follows, and then: why the owner's
 * nvidia-smi failed; nothing, because its turns come to no end; the GPU whose file the owner could
 * not lock; the GPU that the owner's nvidia-smi does not show.
 */
#define STUCK_NVIDIA_SMI "nvidia-smi"
#define STUCK_TURN "turn"
#define STUCK_LOCK "lock"
#define STUCK_GPU "gpu"

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
	int64_t since_ms; /* since when only tickets ahead keep us; 0: something else does */
	int64_t asked_ms; /* when the bells were rung; 0: no answer is awaited */
	int64_t next_ms;  /* not before this is anybody asked again */
	struct passover_list asked, passed;
	struct passover_start *starts;
	size_t start_count, start_room;
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

/* Begins a plan of this waiter; the second names each ticket ahead that the plan starts. */
void passover_plan_begin(struct passover *passover);
MUST_CHECK int passover_plan_start(struct passover *passover, const struct queue_row *row,
	const struct gpuset *gpus);

/* Whether the last plan starts ticket @number, on GPUs. */
bool passover_plans_start(const struct passover *passover, uint64_t number);

/*
 * How to ask whether this waiter could take a set of GPUs itself: no file of them is locked, and a
 * recent sound probe, which began after the last lease on them had ended, shows them free.
 */
struct passover_means {
	bool (*can_take)(void *arg, const struct gpuset *gpus);
	void *arg;
};

/*
 * After a turn in which this waiter cannot start: judges the tickets that its plan starts.
 * PASSOVER_CHANGED: some are passed over now, plan again; 0; or a negative errno.  Sets
 * *@ret_wants_probe if one of them has not started for 1 s: then the caller needs a fresh probe.
 */
MUST_CHECK int passover_consider_starts(struct passover *passover, bool could_start,
	const struct passover_means *means, int64_t now_ms, bool *ret_wants_probe,
	int64_t *ret_wake_ms);

void passover_release(struct passover *passover);

#endif
