/*
 * The policy: FIFO with a protected head.  Pure: no clock, no I/O; the same facts give every
 * waiter the same plan.
 *
 * A plan is a fold over the waiting tickets in their order (priority, then number).  Each is
 * offered the GPUs that nobody before it took:
 *
 * - It has enough: it starts, and they are taken.
 * - It has not, but had it all present leases ended: the first such ticket is the head and
 *   gets a reservation, the GPUs soonest to be free.  Nobody behind it gets those, except
 *   who is certain to have ended before the head could start (backfill).
 * - It waits for something that is no lease (a GPU that is paused, broken, locked or used
 *   outside gpulease): it keeps its place and protects nothing, so that a broken card does
 *   not stop the machine.
 *
 * Since only what lies before a ticket matters to it, a waiter feeds the rows up to its own
 * and stops early once plan_is_closed().
 */
#ifndef GPULEASE_POLICY_H
#define GPULEASE_POLICY_H

#include "gpuset.h"
#include "ticket.h"

/* What keeps a GPU from being given away, the strongest last; GPU_FREE: nothing does. */
enum gpu_state {
	GPU_FREE,
	GPU_LEASED,
	GPU_LINGERING, /* its lease's owner is dead, but somebody it left behind lives */
	GPU_SETTLING,  /* its lease is over, its memory is not free yet */
	GPU_LOCKED,    /* somebody holds its lease file's lock */
	GPU_EXTERNAL,  /* used outside gpulease */
	GPU_UNKNOWN,   /* nvidia-smi says nothing certain of it */
	GPU_PAUSED,
	GPU_STATES
};

struct plan_gpu {
	bool exists;
	bool is_just_released; /* wants a fresh probe */
	enum gpu_state state;
	int64_t end_ms; /* leased: when it ends at the latest, CLOCK_BOOTTIME; 0: no limit */
	uint32_t index; /* what people call it */
};

/* One waiting ticket, as far as the policy looks at it. */
struct plan_row {
	uint64_t ticket;
	uint32_t gpus;
	int64_t limit_ms, grace_ms; /* limit 0: none */
	struct gpuset allow;
};

enum verdict_kind {
	VERDICT_START,  /* ->gpus are its GPUs */
	VERDICT_LEASED, /* leases have to end first */
	VERDICT_BEHIND, /* there would be enough, but ticket ->behind comes first */
	VERDICT_GPU,    /* what is missing is no lease's: ->state of GPU slot ->slot */
};

struct verdict {
	enum verdict_kind kind;
	struct gpuset gpus;
	unsigned wanted, free; /* free: now, of those that it may have */
	uint64_t behind;
	enum gpu_state state;
	uint32_t slot;
};

struct plan {
	const struct plan_gpu *gpus; /* by slot, GPUSET_MAX of them */
	int64_t now_ms;
	struct gpuset present;
	struct gpuset
		usable; /* present, and at most a lease stands between them and a job */
	struct gpuset free;     /* to be given away now */
	struct gpuset reserved; /* for the head; a part of it may be free */
	uint64_t head;          /* the protected ticket, 0: none yet */
	int64_t head_start_ms;  /* when it could start at the latest; 0: nobody knows */
	uint64_t
		first_blocked; /* the first that cannot start, protected or not; 0: none */
};

/* Begins a plan over @gpus (GPUSET_MAX of them, by slot), which the caller keeps. */
void plan_begin(struct plan *plan, const struct plan_gpu *gpus, int64_t now_ms);

/* Offers the next ticket in the order what is left, and says what comes of it. */
struct verdict plan_next(struct plan *plan, const struct plan_row *row);

/*
 * Whether no ticket from here on can start, whatever it asks for: so rows behind need not be
 * looked at for the sake of one behind them.
 */
bool plan_is_closed(const struct plan *plan);

/* The verdict on @row alone, as if every other waiting ticket were passed over. */
struct verdict plan_alone(
	const struct plan_gpu *gpus, int64_t now_ms, const struct plan_row *row);

/* Whether the end of this state raises no event, so that only a timer can find it. */
bool gpu_state_is_silent(enum gpu_state state);

#endif
