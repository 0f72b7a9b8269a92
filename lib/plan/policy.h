/*
 * The plan: FIFO with reservations.  Pure: no clock, no I/O.  The same facts give every waiter the
 * same plan.
 *
 * The plan goes over the waiting tickets in their order (priority, then number).  It offers each
 * ticket the room that no ticket before it has taken.  One of five things follows:
 *
 * - Held (VERDICT_HELD, VERDICT_LIMIT): a job that it depends on, or a limit, holds the ticket
 * back.  It keeps its place, takes nothing and reserves nothing.
 * - Start (VERDICT_START): there is enough room.  The ticket starts, and the room is taken.
 * - Head (VERDICT_LEASED): there is not enough room, but once all present leases have ended there
 * will be, on GPUs that no earlier head has reserved.  The ticket reserves the GPUs that have room
 * for it soonest, and its part of the limits.  Each GPU has at most one head.
 * - Behind (VERDICT_BEHIND): it would be a head, but earlier heads have reserved too many of these
 *   GPUs or too much of the limits; or an earlier ticket waits for a limit that binds this ticket,
 *   too.  It reserves nothing.
 * - Blocked by a GPU (VERDICT_GPU): even without leases there would not be enough room, because a
 * GPU is paused, broken, locked or used outside gpulease.  The ticket keeps its place and reserves
 * nothing, even if a limit holds it back as well.  So a broken card does not stop the machine.
 *
 * A window (windows.h) keeps its GPUs from each ticket that it binds: while it lasts, and before if
 * the job could still run when it begins.  To the plan such a GPU is as if it were paused for this
 * ticket alone.  So a ticket that waits for the end of a window reserves none of these GPUs, and
 * jobs pass it that end before the window begins; it could not start there before either.
 *
 * A ticket gets a reserved GPU only if its job is certain to have ended before the head of that
 * GPU could start (backfill), or if it leaves that head enough.  So no later ticket delays a
 * head.
 *
 * Memory and processes of a lease with a dead owner may be gone at any moment, or may stay.  A
 * head reserves the GPUs that it needs in the one case and those that it needs in the other.
 *
 * Only the tickets before a ticket matter to it.  So a waiter feeds the rows up to its own, and
 * leaves some out once plan_can_be_cut().
 *
 * room.h says how much of a GPU a job needs, and whether there is so much.  choice.h says which of
 * several sets of GPUs the job gets.
 */
#ifndef GPULEASE_POLICY_H
#define GPULEASE_POLICY_H

#include "choice.h"
#include "plan_row.h"
#include "quota.h"
#include "windows.h"

/*
 * A lease that began while a job before it in the order was to start as well, and had not acted
 * yet: see policy_seen.h.
 */
struct plan_early {
	struct queue_place place; /* that its ticket had */
	int64_t since_ms;         /* when the lease began */
	uint32_t uid;
	unsigned percent; /* what it counts for the limits */
};

/* The facts that a plan rests on.  The caller keeps them until the plan is no longer used. */
struct plan_facts {
	const struct plan_gpu *gpus; /* by slot, GPUSET_MAX of them */
	const struct links *links;   /* NULL: nothing is known of them */
	int64_t now_ms;
	uint64_t margin_mib; /* stays free beside declared memory */
	struct plan_limits limits;
	const struct plan_user *users; /* the users that have leases */
	size_t user_count;
	const struct plan_early *early;
	size_t early_count;
	const struct window *windows; /* placed (window_place()) */
	size_t window_count;
};

enum verdict_kind {
	VERDICT_START,  /* ->gpus are its GPUs */
	VERDICT_LEASED, /* leases have to end first; the ticket is a head */
	VERDICT_BEHIND, /* there would be enough, but ticket ->behind comes first */
	VERDICT_GPU,    /* no lease has what is missing: ->state of GPU slot ->slot */
	VERDICT_HELD,   /* ->hold: it waits for job ->held_by, or until ->start_ms */
	VERDICT_LIMIT,  /* ->limit forbids it */
};

struct verdict {
	enum verdict_kind kind;
	struct gpuset gpus;
	unsigned wanted;
	unsigned there; /* VERDICT_GPU: GPUs of this machine that the job may have */
	unsigned free;  /* GPUs with room now; VERDICT_LEASED: without those reserved */
	struct need need;
	/* the most room on one GPU: the largest share that fits, and MiB beside need.percent */
	struct room best;

	/*
	 * The number of a ticket before it:
	 * VERDICT_BEHIND: the ticket that comes first, which needs ->behind_gpus GPUs with
	 * ->behind_need each; ->behind_gpus 0: that ticket waits for a limit.
	 * VERDICT_LEASED: the first head that has reserved room which is free now; 0: none has.
	 * VERDICT_LIMIT: the first head; 0: there is none.
	 */
	uint64_t behind;
	unsigned behind_gpus;
	struct need behind_need;
	/* VERDICT_LEASED: it is the first head, so only leases stand in its way */
	bool is_first;
	/*
	 * When the first head starts at the latest: for VERDICT_LEASED if the ticket is that head,
	 * for VERDICT_BEHIND if ->behind is.  A later head has no such time: if its GPUs are free
	 * before those of an earlier head, the earlier head takes them.  With DEPENDENCY_UNTIL:
	 * when the ticket may start.  0: not known.
	 */
	int64_t start_ms;

	/* what keeps a GPU besides live leases; GPU_FREE: nothing */
	enum gpu_state state;
	uint32_t slot; /* of that GPU; or of one that has room but too many leases */
	struct gpuset others; /* further GPUs that ->state keeps */
	unsigned window; /* GPU_KEPT: 1 + the index of the window of ->slot; 0: none */
	int64_t under_ms; /* with a time limit of at most this it would start now; 0: unknown */

	enum dependency hold;
	uint64_t held_by;
	struct quota_excess limit; /* VERDICT_LIMIT */
};

/* Room on one GPU that a ticket takes which starts in this plan. */
struct plan_start {
	struct plan_use use;
	unsigned next; /* the start before it on the same GPU; PLAN_NO_START: none */
};

/* At most ROOM_LEASES tickets start on one GPU, so ->starts of a plan cannot overflow. */
enum { PLAN_STARTS_MAX = GPUSET_MAX * ROOM_LEASES, PLAN_NO_START = PLAN_STARTS_MAX };

/* A blocked ticket, and what is reserved for it. */
struct plan_head {
	uint64_t ticket;
	uint32_t uid;
	unsigned gpus; /* how many it needs */
	struct need need;
	/* more than it needs if gpu_is_clearing() for one of them */
	struct gpuset reserved;
	int64_t start_ms; /* when it could start at the latest; 0: not known */
	int64_t backfill_ms; /* before this, jobs that pass it must have ended; 0: none may pass */
};

/* What every row touches comes first.  Of the arrays only the items of real GPUs are touched. */
struct plan {
	const struct plan_facts *facts;
	struct gpuset present;
	struct gpuset instances; /* of MIG */
	struct gpuset usable;    /* for a job that needs them whole, once leases end */
	struct gpuset free;      /* can be given away whole now */
	struct gpuset open;      /* have room now for some kind of job */
	struct gpuset reserved;  /* by any head; a part of a GPU may be free */
	struct gpuset closed;    /* windows keep these from the latest row */
	/* the latest row would be above a limit with one of these, or policy_strange() */
	struct gpuset over;
	int64_t changes_ms; /* when a window next changes a verdict; INT64_MAX: never */
	bool is_cut;        /* plan_cut() was called */
	unsigned head_count, start_count;
	uint64_t first_blocked; /* the first ticket that waits for GPUs; 0: none */
	struct quota quota;
	struct quota later_quota; /* once all heads have started */
	/* by slot: the index of the head of a reserved GPU; the latest of ->starts on the GPU */
	uint8_t head_of[GPUSET_MAX];
	uint16_t last_start[GPUSET_MAX];
	struct room now[GPUSET_MAX]; /* left on each GPU */
	/* on a reserved GPU: left once its head has started */
	struct room later[GPUSET_MAX];
	struct plan_head heads[GPUSET_MAX]; /* in the order of their tickets */
	struct plan_start starts[PLAN_STARTS_MAX];
};

/*
 * Goes over the tickets that start on the GPU in this plan.  They form a list through ->next, which
 * ends at the index one past the array.
 */
#define for_each_start(start, plan, slot)                                                \
	for (const struct plan_start *start = &(plan)->starts[(plan)->last_start[slot]]; \
		start != &(plan)->starts[PLAN_NO_START];                                 \
		start = &(plan)->starts[start->next])

/* Begins a plan over @facts, which the caller keeps. */
void plan_begin(struct plan *plan, const struct plan_facts *facts);

/* Offers the next ticket in the order the room that is left.  Returns its verdict. */
struct verdict plan_next(struct plan *plan, const struct plan_row *row);

/* Whether @row could start now if it were the first row.  @plan has no row yet. */
bool plan_could_start(struct plan *plan, const struct plan_row *row);

/* Whether no later ticket can start, whatever it asks for. */
bool plan_is_closed(const struct plan *plan);

/*
 * plan_cut(): leaves out the rows from here up to the waiter's own.  Allowed if plan_can_be_cut():
 * the plan is closed and names an earlier ticket that the waiter has to wait for.  After the cut no
 * row reserves anything, because it is not known which GPUs the rows left out would have reserved.
 */
bool plan_can_be_cut(const struct plan *plan);
void plan_cut(struct plan *plan);

/* Whether the end of @state raises no event, so that only a timer can find it. */
bool gpu_state_is_silent(enum gpu_state state);

#endif
