/*
 * The policy: FIFO with a protected head.  Pure: no clock, no I/O; the same facts give every
 * waiter the same plan.
 *
 * A plan is a fold over the waiting tickets in their order (priority, then number).  Each is
 * offered the room on the GPUs that nobody before it took:
 *
 * - It is held back, by a limit or by a job that it waits for: it keeps its place, takes
 *   nothing and protects nothing.
 * - There is enough: it starts, and the room is taken.
 * - There is not, but would be had all present leases ended: the first such ticket is the
 *   head and gets a reservation, room on the GPUs where it is to be had soonest and its part
 *   of the limits.  Nobody behind it gets that, except who is certain to have ended before
 *   the head could start (backfill), or who leaves the head enough.  Where something is left
 *   of those who have ended, which may be gone at any moment or stay, it is kept what it
 *   needs in either case.
 * - It waits for something that is no lease (a GPU that is paused, broken, locked or used
 *   outside gpulease), perhaps for a limit as well: it keeps its place and protects nothing,
 *   so that a broken card does not stop the machine.
 *
 * Since only what lies before a ticket matters to it, a waiter feeds the rows up to its own
 * and stops early once plan_is_closed().
 *
 * How much of a GPU a job needs and whether there is so much is room.h's; which of several
 * sets of GPUs it gets is choice.h's.
 */
#ifndef GPULEASE_POLICY_H
#define GPULEASE_POLICY_H

#include "choice.h"
#include "quota.h"
#include "ticket.h"

/* What holds a ticket back that is no lack of GPUs, as its reader has found. */
enum hold {
	HOLD_NONE,
	HOLD_AFTER,     /* job ->held_by has not ended */
	HOLD_STATUS,    /* it has, but how is not what was asked for, or not known yet */
	HOLD_SINGLETON, /* job ->held_by of the same user and name comes first */
	HOLD_UNTIL,     /* it is not to be tried again before ->held_until_ms */
};

/* One waiting ticket, as far as the policy looks at it; it is named by its job's id. */
struct plan_row {
	uint64_t ticket;
	uint32_t uid;
	uint32_t gpus;
	struct need need;           /* of each */
	int64_t limit_ms, grace_ms; /* limit 0: none */
	struct gpuset allow;
	struct preference prefer;
	enum hold hold;
	uint64_t held_by;
	int64_t held_until_ms;
};

/* What a plan rests on; the caller keeps all of it. */
struct plan_facts {
	const struct plan_gpu *gpus; /* by slot, GPUSET_MAX of them */
	const struct links *links;   /* NULL: nothing is known of them */
	int64_t now_ms;
	uint64_t margin_mib; /* to stay free beside what is declared */
	struct plan_limits limits;
	const struct plan_user *users; /* who has leases */
	size_t user_count;
};

enum verdict_kind {
	VERDICT_START,  /* ->gpus are its GPUs */
	VERDICT_LEASED, /* leases have to end first */
	VERDICT_BEHIND, /* there would be enough, but ticket ->behind comes first */
	VERDICT_GPU,    /* what is missing is no lease's: ->state of GPU slot ->slot */
	VERDICT_HELD,   /* by what its row says */
	VERDICT_LIMIT,  /* ->limit */
};

struct verdict {
	enum verdict_kind kind;
	struct gpuset gpus;
	unsigned wanted, free; /* free: now, of those that it may have */
	struct need need;
	/* the most that one of them has: percent, and MiB of those with the percent */
	struct room best;

	/*
	 * VERDICT_BEHIND: the head, and what it waits for; 0 GPUs: for a limit.  VERDICT_LIMIT:
	 * the head before it, 0: there is none
	 */
	uint64_t behind;
	unsigned behind_gpus;
	struct need behind_need;
	/*
	 * VERDICT_LEASED, VERDICT_BEHIND: when the head starts at the latest; HOLD_UNTIL: from
	 * when on it may start; 0: nobody knows
	 */
	int64_t start_ms;

	enum gpu_state state; /* what is to blame besides leases; GPU_FREE: nothing */
	uint32_t slot;        /* and where; or a GPU with room but too many leases */

	enum hold hold;
	uint64_t held_by;
	struct quota_excess limit; /* VERDICT_LIMIT */
};

/* Room on one GPU that somebody who starts has taken. */
struct plan_start {
	unsigned slot;
	struct plan_use use;
};

/* What is mostly touched comes first, and of the arrays as much as there are GPUs. */
struct plan {
	const struct plan_facts *facts;
	struct gpuset present;
	struct gpuset instances; /* of MIG */
	struct gpuset usable;    /* at most leases stand between them and a whole job */
	struct gpuset free;      /* to be given away whole, now */
	struct gpuset open;      /* with any room now for some kind of job */
	struct gpuset reserved;  /* for the head; a part of it may be free */
	uint64_t head;           /* the protected ticket, 0: none yet */
	unsigned head_gpus;
	struct need head_need;
	int64_t head_start_ms; /* when it could start at the latest; 0: nobody knows */
	int64_t backfill_ms; /* and by when others have to be gone; 0: nobody may pass */
	uint64_t first_blocked;      /* the first that GPUs keep waiting; 0: none */
	struct room now[GPUSET_MAX]; /* on each GPU, beside what is taken */
	struct room
		later[GPUSET_MAX]; /* on reserved ones, beside the head when it starts */
	struct quota quota;
	struct quota later_quota; /* with the head, when that starts */
	unsigned start_count;
	struct plan_start starts[GPUSET_MAX * ROOM_LEASES];
};

/* What @ticket, number @number, asks for; nothing holds it. */
struct plan_row plan_row_of(uint64_t number, const struct ticket *ticket);

/* What it asks of each of its GPUs. */
struct need request_need(const struct request *request);

/* Begins a plan over @facts, which the caller keeps. */
void plan_begin(struct plan *plan, const struct plan_facts *facts);

/* Offers the next ticket in the order what is left, and says what comes of it. */
struct verdict plan_next(struct plan *plan, const struct plan_row *row);

/*
 * Whether no ticket from here on can start, whatever it asks for: so rows behind need not be
 * looked at for the sake of one behind them.
 */
bool plan_is_closed(const struct plan *plan);

/* Whether the end of this state raises no event, so that only a timer can find it. */
bool gpu_state_is_silent(enum gpu_state state);

#endif
