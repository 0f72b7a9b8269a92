/*
 * The policy: FIFO with reservations.  Pure: no clock, no I/O; the same facts give every
 * waiter the same plan.
 *
 * A plan is a fold over the waiting tickets in their order (priority, then number).  Each is
 * offered the room that no ticket before it took:
 *
 * - It is held back, by a limit or by a job that it waits for: it keeps its place, takes
 *   nothing and reserves nothing.
 * - There is enough: it starts, and the room is taken.
 * - There is not, but would be had all present leases ended, and enough of those GPUs are not
 *   reserved: it becomes a head.  It reserves the GPUs on which its room is to be had soonest,
 *   and its part of the limits.  Each GPU has at most one head.
 * - There is not, but would be had all present leases ended, and too few of those GPUs are left
 *   unreserved: it is behind the heads that have reserved them, and reserves nothing.
 * - It waits for something that is no lease (a GPU that is paused, broken, locked or used
 *   outside gpulease), perhaps for a limit as well: it keeps its place and reserves nothing,
 *   so that a broken card does not stop the machine.
 *
 * A ticket gets a reserved GPU only if its job is certain to have ended before the head of that
 * GPU could start (backfill), or if it leaves that head enough.  So no later ticket delays a
 * head.  Memory and processes of a lease whose owner has ended may be gone at any moment or stay.
 * A head reserves what it needs in either case.
 *
 * Only what lies before a ticket matters to it.  So a waiter feeds the rows up to its own, and
 * leaves some out once plan_can_be_cut().
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
	VERDICT_LEASED, /* leases have to end first; the ticket is a head */
	VERDICT_BEHIND, /* there would be enough, but ticket ->behind comes first */
	VERDICT_GPU,    /* what is missing is no lease's: ->state of GPU slot ->slot */
	VERDICT_HELD,   /* by what its row says */
	VERDICT_LIMIT,  /* ->limit */
};

struct verdict {
	enum verdict_kind kind;
	struct gpuset gpus;
	unsigned wanted;
	unsigned free; /* now, of its candidates; VERDICT_LEASED: less those kept */
	struct need need;
	/* the most that one of them has: percent, and MiB of those with the percent */
	struct room best;

	/*
	 * VERDICT_BEHIND: a ticket before it, and what that ticket waits for; 0 GPUs: for a limit.
	 * VERDICT_LEASED: the first head that keeps room which is free now; 0: none does.
	 * VERDICT_LIMIT: the first head before it; 0: there is none.
	 */
	uint64_t behind;
	unsigned behind_gpus;
	struct need behind_need;
	/* VERDICT_LEASED: it is the first head, so only leases stand in its way */
	bool is_first;
	/*
	 * When the first head starts at the latest: for VERDICT_LEASED if the ticket is that head,
	 * for VERDICT_BEHIND if ->behind is.  A later head has no such time, because an earlier
	 * ticket may take its GPUs if they come free sooner than the ticket's own.  HOLD_UNTIL:
	 * from when on it may start.  0: not known.
	 */
	int64_t start_ms;

	enum gpu_state state; /* what is to blame besides leases; GPU_FREE: nothing */
	uint32_t slot;        /* and where; or a GPU with room but too many leases */

	enum hold hold;
	uint64_t held_by;
	struct quota_excess limit; /* VERDICT_LIMIT */
};

/* Room on one GPU that a ticket which starts has taken. */
struct plan_start {
	struct plan_use use;
	unsigned next; /* the start before it on the same GPU; PLAN_NO_START: none */
};

enum { PLAN_STARTS_MAX = GPUSET_MAX * ROOM_LEASES, PLAN_NO_START = PLAN_STARTS_MAX };

/* A blocked ticket, and what is reserved for it. */
struct plan_head {
	uint64_t ticket;
	uint32_t uid;
	unsigned gpus; /* how many it needs */
	struct need need;
	struct gpuset reserved; /* more than it needs while a GPU is clearing */
	int64_t start_ms;       /* when it could start at the latest; 0: not known */
	int64_t backfill_ms; /* when jobs that pass it must have ended; 0: none may pass */
};

/* What is mostly touched comes first, and of the arrays as much as there are GPUs. */
struct plan {
	const struct plan_facts *facts;
	struct gpuset present;
	struct gpuset instances; /* of MIG */
	struct gpuset usable;    /* at most leases stand between them and a whole job */
	struct gpuset free;      /* to be given away whole, now */
	struct gpuset open;      /* with any room now for some kind of job */
	struct gpuset reserved;  /* for any head; a part of a GPU may be free */
	bool is_cut;             /* plan_cut() was called */
	unsigned head_count, start_count;
	int64_t backfill_ms; /* the least of all heads; 0: one of them lets none pass */
	uint64_t first_blocked; /* the first ticket that GPUs keep waiting; 0: none */
	struct quota quota;
	struct quota later_quota; /* with all heads, when these start */
	/* by slot: of a reserved GPU its head's index; the latest in ->starts, or PLAN_NO_START */
	uint8_t head_of[GPUSET_MAX];
	uint16_t last_start[GPUSET_MAX];
	struct room now[GPUSET_MAX]; /* on each GPU, beside what is taken */
	struct room
		later[GPUSET_MAX]; /* on reserved ones, beside the head when it starts */
	struct plan_head heads[GPUSET_MAX]; /* in the order of their tickets */
	struct plan_start starts[PLAN_STARTS_MAX];
};

/* What @ticket, number @number, asks for; nothing holds it. */
struct plan_row plan_row_of(uint64_t number, const struct ticket *ticket);

/* What it asks of each of its GPUs. */
struct need request_need(const struct request *request);

/* Begins a plan over @facts, which the caller keeps. */
void plan_begin(struct plan *plan, const struct plan_facts *facts);

/* Offers the next ticket in the order what is left, and says what comes of it. */
struct verdict plan_next(struct plan *plan, const struct plan_row *row);

/* Whether @row could start now as the first row of @plan, which has none yet. */
bool plan_could_start(const struct plan *plan, const struct plan_row *row);

/* Whether no ticket from here on can start, whatever it asks for. */
bool plan_is_closed(const struct plan *plan);

/*
 * Leaves out the rows from here up to a waiter's own, if plan_can_be_cut(): the plan is closed and
 * names a ticket that the waiter is behind.  A later row reserves nothing, because it is not known
 * which GPUs the rows left out would have reserved.
 */
bool plan_can_be_cut(const struct plan *plan);
void plan_cut(struct plan *plan);

/* Whether the end of this state raises no event, so that only a timer can find it. */
bool gpu_state_is_silent(enum gpu_state state);

#endif
