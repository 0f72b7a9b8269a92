/*
 * The protocol as a step function, and every order in which two or three processes can
 * take their steps, two GPUs between them, with a death possible before every step.
 *
 * A step is one action that others can see: a ticket appended, a bell drained, a file read,
 * a lock taken, a record written.  What is decided between two steps is decided by the plan
 * of lib/plan/policy.h itself.  All states that can be reached are visited, and in each:
 *
 *	exclusion	no GPU has two owners that live, or two halves at most; no live lease is
 *			overwritten
 *	order		no process takes a GPU that the plan gives to, or keeps for, a ticket ahead
 *	wake-up		when no process has a step left, none of them could start; so a
 *			dead owner's GPU is taken again
 *	cancel		no cancelled process sleeps on
 *
 * Then the protocol is broken in one place at a time, and one of these has to fail.
 *
 * Left out: processes that are stopped and passed over, limits, jobs that wait for jobs.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "policy.h"

enum { PROCS = 3, GPUS = 2, BOTH = (1 << GPUS) - 1 };

/* In a lease file: as many as can be on a GPU, and one that is over. */
enum { RECORDS = 2, HALF = 50 };

/* --- the protocol, and ways to break it --------------------------------------------- */

enum variant {
	CORRECT,
	NO_SECOND_PLAN, /* with the locks held nothing is read again */
	NO_LOCK,        /* locks are not waited for */
	DRAIN_LATE,     /* the bell is drained after reading */
	FIFO_NOT_READ,  /* a FIFO is opened and polled, not read first */
	FIFO_NOT_WATCHED,
	AHEAD_NOT_WATCHED, /* tickets ahead are not waited for */
	HINT_TOO_FAR,      /* by one */
	PID_ALONE,         /* neither inode nor start time is compared */
	RING_FIRST,        /* a resume or cancel rings before it is written */
	FIRST_RECORD,      /* a lease is written over whatever stands first */
	ONE_WATCHED,       /* only the first of the leases that share a GPU is watched */
	VARIANTS
};

/* What an administrator does meanwhile. */
enum admin { ADMIN_NOTHING, ADMIN_RESUME, ADMIN_PAUSE, ADMIN_CANCEL };

struct setting {
	unsigned procs;
	uint8_t wants[PROCS], allow[PROCS];
	bool half[PROCS];  /* of one GPU */
	bool first[PROCS]; /* has a higher priority */
	bool with_heirs, with_reuse;
	enum admin admin; /* pauses or resumes GPU 0, cancels process 0 */
};

static struct setting setting;
static enum variant variant;

/* --- a state ------------------------------------------------------------------------ */

enum place {
	UNBORN,
	DRAIN,
	TICKETS, /* read the ticket file */
	LEASE_0, /* read the lease file of GPU 0 */
	LEASE_1,
	PLAN, /* judge which owners live, and plan */
	PROBE,
	LOCK_0,
	LOCK_1,
	WRITE_0,
	WRITE_1,
	UNLOCK,
	GRANTED, /* rewrite the ticket */
	HINT,    /* write the header */
	RUN,
	ASLEEP,
	LATE_DRAIN,
	GONE
};

/* Masks are of processes or of GPUs; what is not needed any more is zero. */
struct process {
	uint8_t place, is_again; /* with the locks held */
	uint8_t set;             /* the GPUs that the plan gives it */
	uint8_t locked;          /* that it could not lock a moment ago */
	uint8_t waiting;         /* as read: tickets that wait … */
	uint8_t hint;            /* … and the hint; then the one to be written */
	uint8_t lease[GPUS][RECORDS];
	uint8_t paused;
	uint8_t probed; /* dead owners that a probe has been started after */
	uint8_t watch_process, watch_fifo, deaf;
	uint8_t spare;
};

struct state {
	struct process process[PROCS];
	uint8_t order[PROCS], count; /* of tickets */
	uint8_t granted, cancelled;  /* as the ticket file says it, by process */
	uint8_t hint;
	uint8_t lease[GPUS][RECORDS]; /* owner + 1, set << 4; 0: none */
	uint8_t lock[GPUS];           /* holder + 1, PROCS + 1: the administrator */
	uint8_t alive, heirs, reused, bells;
	uint8_t paused, admin, spare;
};

static unsigned lease_owner(uint8_t lease)
{
	return (lease & 0xfu) - 1;
}

static uint8_t lease_set(uint8_t lease)
{
	return lease >> 4;
}

static bool has(uint8_t mask, unsigned bit)
{
	return mask >> bit & 1;
}

static void add(uint8_t *mask, unsigned bit)
{
	*mask = (uint8_t)(*mask | 1u << bit);
}

static void drop(uint8_t *mask, unsigned bit)
{
	*mask = (uint8_t)(*mask & ~(1u << bit));
}

static bool fifo_is_held(const struct state *s, unsigned p)
{
	return has(s->alive, p) || has(s->heirs, p);
}

/* --- planning ----------------------------------------------------------------------- */

/* What a plan rests on: as a process has read it, or as it is. */
struct facts {
	uint8_t waiting, alive, over; /* processes */
	uint8_t lease[GPUS][RECORDS];
	uint8_t paused, locked;
	unsigned from; /* the first ticket that is looked at */
};

struct planned {
	bool starts;
	uint8_t set;   /* GPUs */
	uint8_t ahead; /* processes ahead that are worth watching */
	uint8_t hint;
};

static struct need need_of(unsigned p)
{
	return (struct need){ .percent = setting.half[p] ? HALF : WHOLE_PERCENT };
}

/* What stands on each GPU; one visible record shows all of a lease. */
struct table {
	struct plan_gpu gpus[GPUSET_MAX];
	struct plan_use uses[GPUS][PROCS];
	uint8_t users[GPUS];
};

static void lease_out(struct table *table, unsigned g, unsigned p)
{
	struct plan_gpu *gpu = &table->gpus[g];

	if (has(table->users[g], p))
		return;
	add(&table->users[g], p);
	gpu->state = GPU_LEASED;
	table->uses[g][gpu->use_count++].percent = need_of(p).percent;
}

static bool is_shared(const struct table *table, unsigned g)
{
	return table->gpus[g].use_count && table->uses[g][0].percent == HALF;
}

static void set_gpu(const struct facts *facts, struct table *table, unsigned g)
{
	for (unsigned i = 0; i < RECORDS; i++) {
		uint8_t lease = facts->lease[g][i];
		bool is_over = lease && has(facts->over, lease_owner(lease));

		if (is_over)
			table->gpus[g].is_just_released = true;
		for (unsigned other = 0; other < GPUS && lease && !is_over; other++)
			if (has(lease_set(lease), other))
				lease_out(table, other, lease_owner(lease));
	}
}

static void set_gpus(const struct facts *facts, struct table *table)
{
	struct plan_gpu *gpus = table->gpus;

	memset(table->users, 0, sizeof(table->users));
	for (unsigned g = 0; g < GPUS; g++)
		gpus[g] = (struct plan_gpu){
			.exists = true, .index = g, .uses = table->uses[g]
		};
	for (unsigned g = 0; g < GPUS; g++)
		set_gpu(facts, table, g);
	for (unsigned g = 0; g < GPUS; g++) {
		if (has(facts->paused, g))
			gpus[g].state = GPU_PAUSED;
		else if (has(facts->locked, g) &&
			 (gpus[g].state == GPU_FREE || is_shared(table, g)))
			gpus[g].state = GPU_LOCKED;
	}
}

static bool has_lease(const struct facts *facts, unsigned p)
{
	if (has(facts->over, p))
		return false;
	for (unsigned i = 0; i < GPUS * RECORDS; i++) {
		uint8_t lease = facts->lease[i / RECORDS][i % RECORDS];

		if (lease && lease_owner(lease) == p)
			return true;
	}
	return false;
}

static struct plan_row row_of(unsigned p, uint64_t ticket)
{
	struct plan_row row = {
		.ticket = ticket, .gpus = setting.wants[p], .need = need_of(p)
	};

	row.allow.bits[0] = setting.allow[p];
	return row;
}

static bool waits(const struct facts *facts, unsigned q)
{
	return has(facts->waiting, q) && has(facts->alive, q);
}

/* Plans ticket @i, and notes whether its owner is worth watching. */
static void plan_other(const struct state *s, const struct facts *facts, unsigned i,
	struct plan *plan, struct planned *out)
{
	unsigned q = s->order[i];
	struct plan_row row = row_of(q, i + 1);
	struct verdict verdict;

	if (!waits(facts, q) || has_lease(facts, q))
		return;
	verdict = plan_next(plan, &row);
	if (verdict.kind == VERDICT_START || verdict.kind == VERDICT_LEASED)
		add(&out->ahead, q);
}

/* As broker_plan() does it; @p has ticket @own. */
static struct planned plan_for(
	const struct state *s, const struct facts *facts, unsigned p, unsigned own)
{
	static struct table table;
	const struct plan_facts plan_of = { .gpus = table.gpus, .now_ms = 1000 };
	struct planned out = { .hint = (uint8_t)own };
	struct plan_row row = row_of(p, own + 1);
	struct verdict verdict;
	struct plan plan;

	for (unsigned i = own; i-- > facts->from;)
		if (waits(facts, s->order[i]))
			out.hint = (uint8_t)i;
	set_gpus(facts, &table);
	plan_begin(&plan, &plan_of);
	for (int first = 1; first >= setting.first[p]; first--)
		for (unsigned i = facts->from; i < s->count && !plan_is_closed(&plan);
			i++)
			if (setting.first[s->order[i]] == first &&
				(i < own || first > setting.first[p]))
				plan_other(s, facts, i, &plan, &out);
	verdict = plan_next(&plan, &row);
	out.starts = verdict.kind == VERDICT_START;
	out.set = (uint8_t)verdict.gpus.bits[0];
	return out;
}

static unsigned ticket_of(const struct state *s, unsigned p)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->order[i] == p)
			return i;
	return PROCS;
}

/* Whether the plan over what really is lets @p start now. */
static bool could_start(const struct state *s, unsigned p)
{
	struct facts facts = { .alive = s->alive, .paused = s->paused };

	for (unsigned q = 0; q < setting.procs; q++) {
		if (!has(s->granted, q) && !has(s->cancelled, q))
			add(&facts.waiting, q);
		if (!fifo_is_held(s, q))
			add(&facts.over, q);
	}
	memcpy(facts.lease, s->lease, sizeof(facts.lease));
	return plan_for(s, &facts, p, ticket_of(s, p)).starts;
}

/* --- what must hold ----------------------------------------------------------------- */

enum violation { NONE, EXCLUSION, ORDER, WAKE_UP, CANCEL };

static enum violation found; /* in the step that was taken last */

static void check(bool holds, enum violation violation)
{
	if (!holds && !found)
		found = violation;
}

/* The GPUs that @p or a process that it left uses. */
static uint8_t in_use(const struct state *s, unsigned p)
{
	const struct process *process = &s->process[p];

	if (!fifo_is_held(s, p))
		return 0;
	switch ((enum place)process->place) {
	case UNLOCK:
	case GRANTED:
	case HINT:
	case RUN:
		return process->set;
	case GONE:
		return process->set; /* kept while it has an heir */
	default:
		return 0;
	}
}

static void check_exclusion(const struct state *s)
{
	for (unsigned g = 0; g < GPUS; g++) {
		unsigned percent = 0;

		for (unsigned p = 0; p < setting.procs; p++)
			if (has(in_use(s, p), g))
				percent += need_of(p).percent;
		check(percent <= WHOLE_PERCENT, EXCLUSION);
	}
}

/* Whether a ticket of a higher priority has come meanwhile. */
static bool has_overtaken(const struct state *s, unsigned p)
{
	for (unsigned i = ticket_of(s, p) + 1; i < s->count; i++)
		if (setting.first[s->order[i]] && !setting.first[p])
			return true;
	return false;
}

/* Before the first lease of @p is written. */
static void check_order(const struct state *s, unsigned p)
{
	/* after a lock was seen, or an administrator has acted, the order is approximate */
	if (!s->process[p].locked && setting.admin == ADMIN_NOTHING &&
		!has_overtaken(s, p))
		check(could_start(s, p), ORDER);
}

/* --- one step of a process ---------------------------------------------------------- */

static void forget_reading(struct process *process)
{
	process->waiting = process->paused = 0;
	memset(process->lease, 0, sizeof(process->lease));
}

static void unlock_all(struct state *s, unsigned p)
{
	for (unsigned g = 0; g < GPUS; g++)
		if (s->lock[g] == p + 1)
			s->lock[g] = 0;
	s->process[p].is_again = 0;
}

static void die(struct state *s, unsigned p, bool leaves_heir)
{
	uint8_t set = s->process[p].set;

	unlock_all(s, p);
	drop(&s->alive, p);
	drop(&s->bells, p);
	memset(&s->process[p], 0, sizeof(s->process[p]));
	s->process[p].place = GONE;
	if (leaves_heir) {
		add(&s->heirs, p);
		s->process[p].set = set;
	}
}

/* From the first lock that @from allows to the first of the set; then to @then. */
static uint8_t place_for(uint8_t set, unsigned from, enum place first, enum place then)
{
	for (unsigned g = from; g < GPUS; g++)
		if (has(set, g))
			return (uint8_t)(first + g);
	return (uint8_t)then;
}

static void read_tickets(struct state *s, unsigned p)
{
	struct process *process = &s->process[p];

	if (has(s->cancelled, p)) {
		die(s, p, false); /* gives up */
		return;
	}
	process->waiting = 0;
	for (unsigned i = 0; i < s->count; i++)
		if (!has(s->granted, s->order[i]) && !has(s->cancelled, s->order[i]))
			add(&process->waiting, s->order[i]);
	process->hint = s->hint;
	process->place = LEASE_0;
}

static void read_lease(struct state *s, unsigned p, unsigned g)
{
	struct process *process = &s->process[p];

	memcpy(process->lease[g], s->lease[g], sizeof(process->lease[g]));
	if (has(s->paused, g))
		add(&process->paused, g);
	process->place = (uint8_t)(g + 1 < GPUS ? LEASE_0 + g + 1 : PLAN);
}

/* How @p sees the two halves of process @q: by pidfd and by FIFO. */
static bool sees_process(const struct state *s, unsigned q)
{
	return has(s->alive, q) || (variant == PID_ALONE && has(s->reused, q));
}

static bool sees_fifo(const struct state *s, unsigned q)
{
	return fifo_is_held(s, q) || variant == FIFO_NOT_READ;
}

/* What the owner of a lease is watched by: the halves that have not fired. */
static void watch_owner(const struct state *s, struct process *process, unsigned q)
{
	if (sees_process(s, q)) {
		add(&process->watch_process, q);
		if (!has(s->alive, q))
			add(&process->deaf, q); /* the pidfd is a stranger's */
	}
	if (sees_fifo(s, q) && variant != FIFO_NOT_WATCHED) {
		add(&process->watch_fifo, q);
		if (!fifo_is_held(s, q))
			add(&process->deaf,
				q + 4); /* opened after its last writer left */
	}
}

static void fall_asleep(const struct state *s, struct process *process, uint8_t ahead)
{
	for (unsigned i = 0; i < GPUS * RECORDS; i++) {
		uint8_t lease = process->lease[i / RECORDS][i % RECORDS];
		unsigned q = lease_owner(lease);

		if (variant == ONE_WATCHED && i % RECORDS)
			continue;
		if (lease && (sees_process(s, q) || sees_fifo(s, q)))
			watch_owner(s, process, q);
	}
	for (unsigned q = 0; q < setting.procs && variant != AHEAD_NOT_WATCHED; q++)
		if (has(ahead, q)) {
			add(&process->watch_process, q);
			if (!has(s->alive, q))
				add(&process->deaf, q);
		}
	process->set = process->hint = 0;
	process->place = variant == DRAIN_LATE ? LATE_DRAIN : ASLEEP;
}

/* Whether a probe was started after all former leases of @set were seen over. */
static bool is_probe_fresh(const struct process *process, const struct facts *facts)
{
	for (unsigned i = 0; i < GPUS * RECORDS; i++) {
		uint8_t lease = process->lease[i / RECORDS][i % RECORDS];

		if (lease && has(process->set, i / RECORDS) &&
			has(facts->over, lease_owner(lease)) &&
			!has(process->probed, lease_owner(lease)))
			return false;
	}
	return true;
}

static void judge_and_plan(struct state *s, unsigned p)
{
	struct process *process = &s->process[p];
	unsigned own = ticket_of(s, p);
	struct facts facts = { .waiting = process->waiting,
		.paused = process->paused,
		.locked = process->locked,
		.from = process->hint < own ? process->hint : own };
	struct planned planned;
	bool is_as_before;

	for (unsigned q = 0; q < setting.procs; q++) {
		if (sees_process(s, q))
			add(&facts.alive, q);
		else if (!sees_fifo(s, q))
			add(&facts.over, q);
	}
	memcpy(facts.lease, process->lease, sizeof(facts.lease));
	planned = plan_for(s, &facts, p, own);
	is_as_before = planned.starts && planned.set == process->set;
	process->set = planned.set;
	process->hint = planned.hint;
	if (process->is_again && !is_as_before) {
		unlock_all(s, p);
		process->set = process->hint = 0;
		process->place = TICKETS;
	} else if (!planned.starts) {
		fall_asleep(s, process, planned.ahead);
	} else if (!is_probe_fresh(process, &facts)) {
		unlock_all(s, p);
		process->probed |= facts.over;
		process->set = process->hint = 0;
		process->place = PROBE;
	} else if (process->is_again) {
		check_order(s, p);
		process->place = place_for(process->set, 0, WRITE_0, UNLOCK);
	} else {
		process->place = place_for(process->set, 0, LOCK_0, TICKETS);
	}
	forget_reading(process);
}

static void take_lock(struct state *s, unsigned p, unsigned g)
{
	struct process *process = &s->process[p];

	if (s->lock[g] && variant != NO_LOCK) {
		add(&process->locked, g);
		unlock_all(s, p);
		process->set = process->hint = 0;
		process->place = TICKETS;
		return;
	}
	s->lock[g] = (uint8_t)(p + 1);
	process->place = place_for(process->set, g + 1, LOCK_0, TICKETS);
	if (process->place != TICKETS)
		return;
	process->is_again = 1;
	if (variant == NO_SECOND_PLAN)
		process->place = place_for(process->set, 0, WRITE_0, UNLOCK);
}

/* What is over goes, what lives stays, and the first record that is free is taken. */
static void write_lease(struct state *s, unsigned p, unsigned g)
{
	struct process *process = &s->process[p];
	unsigned free_at = RECORDS, percent = need_of(p).percent;

	for (unsigned i = RECORDS; i-- > 0;) {
		uint8_t *lease = &s->lease[g][i];
		unsigned q = lease_owner(*lease);

		if (*lease && q != p && fifo_is_held(s, q)) {
			percent += need_of(q).percent;
			continue;
		}
		*lease = 0;
		free_at = i;
	}
	check(percent <= WHOLE_PERCENT, EXCLUSION);
	if (variant == FIRST_RECORD)
		free_at = 0;
	check(free_at == RECORDS || !s->lease[g][free_at], EXCLUSION);
	if (free_at < RECORDS)
		s->lease[g][free_at] = (uint8_t)(p + 1 + process->set * 16u);
	process->place = place_for(process->set, g + 1, WRITE_0, UNLOCK);
}

static void write_hint(struct state *s, unsigned p)
{
	struct process *process = &s->process[p];
	unsigned hint = process->hint;

	if (hint == ticket_of(s, p))
		hint++;
	if (variant == HINT_TOO_FAR)
		hint++;
	if (hint > s->hint)
		s->hint = (uint8_t)hint;
	process->hint = process->probed = process->locked = 0;
	process->place = RUN;
}

static bool is_woken(const struct state *s, unsigned p)
{
	const struct process *process = &s->process[p];

	if (has(s->bells, p))
		return true;
	for (unsigned q = 0; q < setting.procs; q++) {
		if (has(process->watch_process, q) && !has(process->deaf, q) &&
			!has(s->alive, q))
			return true;
		if (has(process->watch_fifo, q) && !has(process->deaf, q + 4) &&
			!fifo_is_held(s, q))
			return true;
	}
	return false;
}

static void wake(struct process *process)
{
	process->watch_process = process->watch_fifo = process->deaf = 0;
	process->place = variant == DRAIN_LATE ? TICKETS : DRAIN;
}

/* Takes the next step of @p; false where it has none. */
static bool step(struct state *s, unsigned p)
{
	struct process *process = &s->process[p];

	switch ((enum place)process->place) {
	case UNBORN:
	case RUN:
	case GONE:
		return false;
	case DRAIN:
		drop(&s->bells, p);
		process->place = TICKETS;
		return true;
	case TICKETS:
		read_tickets(s, p);
		return true;
	case LEASE_0:
	case LEASE_1:
		read_lease(s, p, process->place - (unsigned)LEASE_0);
		return true;
	case PLAN:
		judge_and_plan(s, p);
		return true;
	case PROBE:
		process->place = variant == DRAIN_LATE ? TICKETS : DRAIN;
		return true;
	case LOCK_0:
	case LOCK_1:
		take_lock(s, p, process->place - (unsigned)LOCK_0);
		return true;
	case WRITE_0:
	case WRITE_1:
		write_lease(s, p, process->place - (unsigned)WRITE_0);
		return true;
	case UNLOCK:
		unlock_all(s, p);
		process->place = GRANTED;
		return true;
	case GRANTED:
		add(&s->granted, p);
		drop(&s->bells, p);
		process->place = HINT;
		return true;
	case HINT:
		write_hint(s, p);
		return true;
	case LATE_DRAIN:
		drop(&s->bells, p);
		process->place = ASLEEP;
		return true;
	case ASLEEP:
		if (!is_woken(s, p))
			return false;
		wake(process);
		return true;
	}
	return false;
}

/* What was locked is tried again after a second. */
static bool step_timer(struct state *s, unsigned p)
{
	struct process *process = &s->process[p];

	if (process->place != ASLEEP || !process->locked)
		return false;
	process->locked = 0;
	wake(process);
	return true;
}

/* --- the administrator -------------------------------------------------------------- */

enum {
	ADMIN_LOCK = 0,
	ADMIN_COMMIT = 1,
	ADMIN_RING = 2,
	ADMIN_DONE = ADMIN_RING + PROCS
};

static bool commit_admin(struct state *s)
{
	if (setting.admin == ADMIN_CANCEL) {
		if (ticket_of(s, 0) == PROCS)
			return false;
		add(&s->cancelled, 0);
		return true;
	}
	s->lock[0] = 0;
	s->paused = setting.admin == ADMIN_PAUSE;
	return true;
}

static bool lock_admin(struct state *s)
{
	if (setting.admin == ADMIN_CANCEL)
		return true;
	if (s->lock[0])
		return false;
	s->lock[0] = PROCS + 1;
	return true;
}

/* Lock, commit, ring one after the other; broken: ring, lock, commit. */
static bool step_admin(struct state *s)
{
	static const uint8_t first[] = { ADMIN_RING, ADMIN_RING + 1, ADMIN_RING + 2,
		ADMIN_LOCK, ADMIN_COMMIT };
	unsigned at = s->admin;

	if (setting.admin == ADMIN_NOTHING || at >= ADMIN_DONE)
		return false;
	if (variant == RING_FIRST)
		at = first[at];
	if (at >= ADMIN_RING && has(s->alive, at - ADMIN_RING))
		add(&s->bells, at - ADMIN_RING);
	if ((at == ADMIN_LOCK && !lock_admin(s)) ||
		(at == ADMIN_COMMIT && !commit_admin(s)))
		return false;
	s->admin++;
	return true;
}

/* --- all orders --------------------------------------------------------------------- */

/* What can happen next, by number. */
enum {
	BY_ADMIN = 0,
	BY_STEP = 1,
	BY_TIMER = 4,
	BY_BIRTH = 7,
	BY_DEATH = 10,
	BY_HEIR = 13,
	BY_LAST_HEIR = 16,
	BY_REUSE = 19,
	EVENTS = 22
};

static void join(struct state *s, unsigned p)
{
	add(&s->alive, p);
	s->order[s->count++] = (uint8_t)p;
	s->process[p].place = variant == DRAIN_LATE ? TICKETS : DRAIN;
}

/* Lets @event happen to @s; false where it cannot. */
static bool happen(struct state *s, unsigned event)
{
	unsigned p = (event + PROCS - 1) % PROCS;
	struct process *process = &s->process[p];

	if (event == BY_ADMIN)
		return step_admin(s);
	if (p >= setting.procs)
		return false;
	if (event < BY_TIMER)
		return step(s, p);
	if (event < BY_BIRTH)
		return step_timer(s, p);
	if (event < BY_DEATH) {
		if (process->place != UNBORN)
			return false;
		join(s, p);
		return true;
	}
	if (event < BY_LAST_HEIR) {
		bool leaves_heir = event >= BY_HEIR;

		if (!has(s->alive, p) ||
			(leaves_heir && (!setting.with_heirs || process->place != RUN)))
			return false;
		die(s, p, leaves_heir);
		return true;
	}
	if (event < BY_REUSE) {
		if (!has(s->heirs, p))
			return false;
		drop(&s->heirs, p);
		process->set = 0;
		return true;
	}
	if (!setting.with_reuse || process->place != GONE || has(s->reused, p))
		return false;
	add(&s->reused, p);
	return true;
}

/* Nothing is left to do but what comes from outside: births, deaths. */
static void check_rest(const struct state *s)
{
	for (unsigned p = 0; p < setting.procs; p++) {
		if (s->process[p].place != ASLEEP)
			continue;
		check(!has(s->cancelled, p), CANCEL);
		check(!could_start(s, p), WAKE_UP);
	}
}

/* The states that were reached, in the order in which they were. */
enum { STATES_MAX = 3000000, BUCKETS = 1 << 23 };

static struct state *states;
static uint32_t *parents, *buckets; /* 0: none, else the state's number + 1 */
static uint8_t *events;
static uint32_t reached;
static uint32_t places; /* where a process has been in any of them */

static uint32_t hash(const struct state *s)
{
	const unsigned char *bytes = (const unsigned char *)s;
	uint64_t sum = 1469598103934665603u;

	for (size_t i = 0; i < sizeof(*s); i++)
		sum = (sum ^ bytes[i]) * 1099511628211u;
	return (uint32_t)(sum >> 32 ^ sum);
}

static void reach(const struct state *s, uint32_t parent, unsigned event)
{
	uint32_t at = hash(s) % BUCKETS;

	for (; buckets[at]; at = (at + 1) % BUCKETS)
		if (memcmp(&states[buckets[at] - 1], s, sizeof(*s)) == 0)
			return;
	if (reached == STATES_MAX)
		fail_msg("more than %d states", STATES_MAX);
	for (unsigned p = 0; p < setting.procs; p++)
		places |= 1u << s->process[p].place;
	states[reached] = *s;
	parents[reached] = parent;
	events[reached] = (uint8_t)event;
	buckets[at] = ++reached;
}

/* Takes every step that is possible in state @number. */
static void expand(uint32_t number)
{
	bool rests = true;

	for (unsigned event = 0; event < EVENTS && !found; event++) {
		struct state next = states[number];

		if (!happen(&next, event))
			continue;
		rests = rests && event >= BY_BIRTH;
		check_exclusion(&next);
		reach(&next, number, event);
	}
	if (rests)
		check_rest(&states[number]);
}

static void print_path(uint32_t number)
{
	static const char *const what[] = { "step", "timer", "is born", "dies",
		"dies, leaves an heir", "its heir dies", "its pid is used again" };
	uint32_t path[256];
	unsigned count = 0;

	for (; number && count < ARRAY_SIZE(path); number = parents[number])
		path[count++] = number;
	while (count--) {
		const struct state *s = &states[path[count]];
		unsigned event = events[path[count]], p = (event + PROCS - 1) % PROCS;

		if (event == BY_ADMIN)
			print_message("# administrator %u\n", s->admin);
		else
			print_message("# %u: %s, now at %u, set %u\n", p,
				what[(event - 1) / PROCS], s->process[p].place,
				s->process[p].set);
	}
}

/* Visits all states from the empty one on, until something does not hold. */
static enum violation explore(const struct setting *with, enum variant broken)
{
	struct state start;

	setting = *with;
	variant = broken;
	found = NONE;
	reached = 0;
	memset(buckets, 0, BUCKETS * sizeof(*buckets));
	memset(&start, 0, sizeof(start));
	start.paused = setting.admin == ADMIN_RESUME;
	for (unsigned p = 0; p < PROCS; p++)
		if (!setting.allow[p])
			setting.allow[p] = BOTH;
	reach(&start, 0, 0);
	for (uint32_t number = 0; number < reached; number++) {
		expand(number);
		if (!found)
			continue;
		if (broken == CORRECT)
			print_path(number);
		return found;
	}
	return NONE;
}

/* --- tests -------------------------------------------------------------------------- */

static const char *const violation_names[] = { "nothing", "exclusion", "order", "wake-up",
	"cancel" };

enum { FIRST_WITH_HALVES = 20 };

static const struct setting settings[] = {
	{ .procs = 2, .wants = { 1, 1 }, .with_heirs = true, .with_reuse = true },
	{ .procs = 2, .wants = { 1, 2 }, .with_heirs = true, .with_reuse = true },
	{ .procs = 2, .wants = { 2, 2 }, .with_heirs = true, .with_reuse = true },
	{ .procs = 2, .wants = { 1, 1 }, .allow = { 1, 1 }, .with_heirs = true },
	{ .procs = 2, .wants = { 1, 2 }, .admin = ADMIN_RESUME, .with_heirs = true },
	{ .procs = 2, .wants = { 2, 2 }, .admin = ADMIN_RESUME },
	{ .procs = 2, .wants = { 1, 1 }, .admin = ADMIN_PAUSE },
	{ .procs = 2, .wants = { 2, 2 }, .admin = ADMIN_PAUSE },
	{ .procs = 2, .wants = { 2, 1 }, .admin = ADMIN_CANCEL },
	{ .procs = 2, .wants = { 2, 2 }, .admin = ADMIN_CANCEL },
	{ .procs = 3, .wants = { 1, 1, 1 } },
	{ .procs = 3, .wants = { 1, 1, 2 } },
	{ .procs = 3, .wants = { 1, 2, 2 } },
	{ .procs = 3, .wants = { 2, 2, 2 } },
	{ .procs = 3, .wants = { 1, 2, 1 }, .allow = { 1, BOTH, 2 } },
	{ .procs = 3, .wants = { 1, 1, 2 }, .with_heirs = true, .with_reuse = true },
	{ .procs = 3, .wants = { 1, 2, 2 }, .with_heirs = true },
	{ .procs = 3, .wants = { 2, 1, 2 }, .admin = ADMIN_RESUME },
	{ .procs = 3, .wants = { 2, 2, 1 }, .admin = ADMIN_CANCEL },
	{ .procs = 3, .wants = { 2, 2, 2 }, .admin = ADMIN_PAUSE },
	/* halves: of one GPU between all, with a whole one, on two */
	{ .procs = 3,
		.wants = { 1, 1, 1 },
		.half = { true, true, true },
		.allow = { 1, 1, 1 },
		.with_heirs = true },
	{ .procs = 3,
		.wants = { 1, 1, 1 },
		.half = { true, true },
		.allow = { 1, 1, 1 } },
	{ .procs = 3, .wants = { 1, 1, 2 }, .half = { true, true }, .with_heirs = true },
	{ .procs = 3, .wants = { 1, 2, 1 }, .half = { true, false, true } },
	{ .procs = 2,
		.wants = { 1, 1 },
		.half = { true, true },
		.with_heirs = true,
		.with_reuse = true },
	{ .procs = 2,
		.wants = { 1, 1 },
		.half = { true, true },
		.allow = { 1, 1 },
		.with_heirs = true,
		.admin = ADMIN_RESUME },
	/* a later ticket that comes first */
	{ .procs = 3, .wants = { 1, 2, 1 }, .first = { false, false, true } },
	{ .procs = 3, .wants = { 2, 2, 2 }, .first = { false, false, true } },
	{ .procs = 3, .wants = { 2, 1, 2 }, .first = { false, true, false } },
	{ .procs = 3,
		.wants = { 1, 1, 1 },
		.half = { true, true, true },
		.allow = { 1, 1, 1 },
		.first = { false, false, true } },
	{ .procs = 2, .wants = { 2, 2 }, .first = { false, true }, .with_heirs = true },
};

static void in_every_order_the_protocol_holds(void **state)
{
	(void)state;
	places = 0;
	assert_true(settings[FIRST_WITH_HALVES].half[0]);
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		enum violation violation = explore(&settings[i], CORRECT);

		if (violation)
			fail_msg("setting %zu: %s does not hold", i,
				violation_names[violation]);
		print_message("# setting %zu: %u states\n", i, reached);
	}
	/* and no part of it was left out */
	assert_int_equal(places, (1u << (GONE + 1)) - 1 - (1u << LATE_DRAIN));
}

/* Explores settings, from @first on, until one shows @wanted; any other violation is none. */
static void check_broken_from(size_t first, enum variant broken, enum violation wanted)
{
	for (size_t i = first; i < ARRAY_SIZE(settings); i++) {
		enum violation violation = explore(&settings[i], broken);

		if (violation == wanted)
			return;
	}
	fail_msg("%s always holds all the same", violation_names[wanted]);
}

static void check_broken(enum variant broken, enum violation wanted)
{
	check_broken_from(0, broken, wanted);
}

static void without_a_second_plan_under_the_locks_a_gpu_has_two_owners(void **state)
{
	(void)state;
	check_broken(NO_SECOND_PLAN, EXCLUSION);
}

static void without_locks_a_gpu_has_two_owners(void **state)
{
	(void)state;
	check_broken(NO_LOCK, EXCLUSION);
}

static void a_bell_drained_after_reading_loses_a_resume(void **state)
{
	(void)state;
	check_broken(DRAIN_LATE, WAKE_UP);
}

static void a_bell_drained_after_reading_loses_a_cancel(void **state)
{
	(void)state;
	check_broken(DRAIN_LATE, CANCEL);
}

static void a_fifo_polled_but_not_read_hangs_a_waiter(void **state)
{
	(void)state;
	check_broken(FIFO_NOT_READ, WAKE_UP);
}

static void a_fifo_not_watched_hangs_a_waiter(void **state)
{
	(void)state;
	check_broken(FIFO_NOT_WATCHED, WAKE_UP);
}

static void a_ticket_ahead_not_watched_hangs_a_waiter(void **state)
{
	(void)state;
	check_broken(AHEAD_NOT_WATCHED, WAKE_UP);
}

static void a_hint_one_too_far_lets_others_overtake_the_head(void **state)
{
	(void)state;
	check_broken(HINT_TOO_FAR, ORDER);
}

static void a_pid_that_is_used_again_keeps_a_dead_owners_gpu(void **state)
{
	(void)state;
	check_broken(PID_ALONE, WAKE_UP);
}

static void a_ring_before_the_commit_is_lost(void **state)
{
	(void)state;
	check_broken(RING_FIRST, WAKE_UP);
}

static void a_lease_over_the_first_record_takes_a_sharers_place(void **state)
{
	(void)state;
	check_broken_from(FIRST_WITH_HALVES, FIRST_RECORD, EXCLUSION);
}

static void a_sharer_not_watched_hangs_a_waiter(void **state)
{
	(void)state;
	check_broken_from(FIRST_WITH_HALVES, ONE_WATCHED, WAKE_UP);
}

static int allocate(void **state)
{
	(void)state;
	states = malloc(STATES_MAX * sizeof(*states));
	parents = malloc(STATES_MAX * sizeof(*parents));
	events = malloc(STATES_MAX);
	buckets = malloc(BUCKETS * sizeof(*buckets));
	return states && parents && events && buckets ? 0 : -1;
}

static int release(void **state)
{
	(void)state;
	free(states);
	free(parents);
	free(events);
	free(buckets);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_every_order_the_protocol_holds),
		cmocka_unit_test(
			without_a_second_plan_under_the_locks_a_gpu_has_two_owners),
		cmocka_unit_test(without_locks_a_gpu_has_two_owners),
		cmocka_unit_test(a_bell_drained_after_reading_loses_a_resume),
		cmocka_unit_test(a_bell_drained_after_reading_loses_a_cancel),
		cmocka_unit_test(a_fifo_polled_but_not_read_hangs_a_waiter),
		cmocka_unit_test(a_fifo_not_watched_hangs_a_waiter),
		cmocka_unit_test(a_ticket_ahead_not_watched_hangs_a_waiter),
		cmocka_unit_test(a_hint_one_too_far_lets_others_overtake_the_head),
		cmocka_unit_test(a_pid_that_is_used_again_keeps_a_dead_owners_gpu),
		cmocka_unit_test(a_ring_before_the_commit_is_lost),
		cmocka_unit_test(a_lease_over_the_first_record_takes_a_sharers_place),
		cmocka_unit_test(a_sharer_not_watched_hangs_a_waiter),
	};

	return cmocka_run_group_tests(tests, allocate, release);
}
