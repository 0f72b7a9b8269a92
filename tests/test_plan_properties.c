#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "draw.h"
#include "estimate.h"
#include "policy.h"

/* The verdict on @row alone, as if every other waiting ticket were passed over. */
static struct verdict plan_alone(const struct plan_facts *on, const struct plan_row *row)
{
	static struct plan plan;

	plan_begin(&plan, on);
	return plan_next(&plan, row);
}

/*
 * What holds of every plan, whatever the machine and the queue: random ones, the same in
 * each run.  The rules are told a second time here, as simply as possible.
 */

enum { ROUNDS = 20000, ROWS = 16, SLOTS = 9, USES = 4, USERS = 4 };
enum { USES_MOST = USES + ROWS };
enum { NOW_MS = 1000000, MINUTE_MS = 60000, MARGIN_MIB = 512, CARD_MIB = 81920 };

static struct machine {
	uint64_t seed;
	struct plan_gpu gpus[GPUSET_MAX];
	struct plan_use uses[SLOTS][USES_MOST];
	struct plan_user users[USERS];
	struct links links;
	struct plan_facts facts;
	bool is_cleared; /* what ended leases have left counts as gone */
	struct plan_row rows[ROWS];
	size_t count;
	struct plan plan;              /* after all of them */
	struct verdict verdicts[ROWS]; /* of the rows, in their order */
} m;

/* --- random machines and queues ------------------------------------------------------- */

static uint64_t random_state;

static unsigned below(unsigned bound)
{
	return draw(&random_state, bound);
}

static bool chance(unsigned percent)
{
	return below(100) < percent;
}

static struct need random_need(void)
{
	static const unsigned percents[] = { 10, 25, 33, 50, 50, 75 };
	unsigned percent = percents[below(ARRAY_SIZE(percents))];
	uint64_t mib = (1 + below(60)) * UINT64_C(1024);

	switch (below(6)) {
	case 0:
		return (struct need){ .percent = percent };
	case 1:
		return (struct need){ .mib = mib };
	case 2:
		return (struct need){ .percent = percent, .mib = mib };
	default:
		return NEED_WHOLE;
	}
}

static int64_t random_end_ms(void)
{
	return chance(30) ? 0 : NOW_MS + (int64_t)below(60) * MINUTE_MS - MINUTE_MS;
}

/* Leases, now and then more than fit: memory may have grown beyond what was declared. */
static void random_uses(unsigned slot)
{
	struct plan_gpu *gpu = &m.gpus[slot];
	struct plan_use *uses = m.uses[slot];

	gpu->uses = uses;
	if (chance(30)) {
		uses[gpu->use_count++] = (struct plan_use){ .percent = WHOLE_PERCENT,
			.mib = gpu->total_mib,
			.end_ms = random_end_ms() };
	} else {
		unsigned left = WHOLE_PERCENT, count = below(gpu->is_solo ? 2 : USES + 1);

		while (gpu->use_count < count) {
			unsigned percent = chance(30) ? 0 : below(left / 2 + 1);

			left -= percent;
			uses[gpu->use_count++] = (struct plan_use){ .percent = percent,
				.mib = gpu->total_mib ? below(CARD_MIB / 3) : 0,
				.is_declared = !percent || chance(50),
				.end_ms = random_end_ms() };
		}
	}
	for (unsigned i = 0; i < gpu->use_count; i++)
		if (gpu->state == GPU_LINGERING || chance(5)) {
			uses[i].is_dead = true;
			uses[i].end_ms = 0;
		}
	if (gpu->use_count && gpu->state == GPU_FREE)
		gpu->state = GPU_LEASED;
}

static enum gpu_state any_gpu_state(void)
{
	return chance(75) ? GPU_FREE : (enum gpu_state)below(GPU_STATES);
}

static void random_gpu(unsigned slot, bool has_instances)
{
	struct plan_gpu *gpu = &m.gpus[slot];

	*gpu = (struct plan_gpu){
		.exists = chance(92),
		.is_just_released = chance(20),
		.is_instance = has_instances && chance(50),
		.is_solo = chance(8),
		.is_busy = chance(8),
		.state = any_gpu_state(),
		.index = (slot * 7 + 3) % SLOTS,
		.total_mib = chance(4)    ? 0
			     : chance(80) ? CARD_MIB
					  : CARD_MIB / 2,
	};
	if (gpu->state == GPU_LEASED || chance(50))
		random_uses(slot);
	if ((gpu->state == GPU_LEASED || gpu->state == GPU_LINGERING) && !gpu->use_count)
		gpu->state = GPU_FREE;
	/* of a free GPU: what a process outside gpulease had, and may take again */
	if (gpu->state == GPU_EXTERNAL || chance(10))
		gpu->foreign_mib = 1 + below(CARD_MIB / 2);
	if (gpu->state == GPU_SETTLING || chance(5))
		gpu->settling_mib = below(CARD_MIB / 2);
}

static void random_links(void)
{
	static const uint8_t levels[] = { LINK_SYS, LINK_PHB, LINK_NV + 4, LINK_NV + 12 };

	for (unsigned a = 0; a < SLOTS; a++) {
		m.links.node[a] = (int16_t)below(2);
		for (unsigned b = 0; b < a; b++)
			m.links.level[a][b] = m.links.level[b][a] =
				levels[below(ARRAY_SIZE(levels))];
	}
}

static void random_row(unsigned i)
{
	struct plan_row *row = &m.rows[i];

	*row = (struct plan_row){
		.ticket = 100 + i,
		.uid = below(USERS),
		.gpus = chance(60) ? 1 : 1 + below(4),
		.need = random_need(),
		.limit_ms = chance(40) ? 0 : (1 + below(50)) * INT64_C(60000),
		.grace_ms = below(3) * INT64_C(15000),
		.allow = GPUSET_ALL,
		.hold = chance(6) ? DEPENDENCY_AFTER : DEPENDENCY_NONE,
	};
	if (row->hold != DEPENDENCY_NONE)
		row->held_by = 7;
	if (chance(25))
		row->allow = (struct gpuset){ { below(1 << SLOTS) } };
	if (chance(20))
		for (row->prefer.count = 1 + below(3); below(4);)
			row->prefer.slots[below(row->prefer.count)] =
				(uint8_t)below(SLOTS);
	/* equal ones are what the order is about */
	if (i && chance(30)) {
		uint64_t ticket = row->ticket;

		*row = m.rows[below(i)];
		row->ticket = ticket;
	}
}

/* The tickets of some users have limits of their own, all tickets of a user the same ones. */
static void random_own_limits(void)
{
	struct {
		unsigned percent, leases;
	} users[USERS];

	for (unsigned i = 0; i < USERS; i++) {
		users[i].percent = chance(50) ? 100 + below(400) : 0;
		users[i].leases = chance(30) ? 1 + below(5) : 0;
		if (chance(10))
			users[i].percent = users[i].leases = PLAN_NO_LIMIT;
	}
	for (unsigned i = 0; i < m.count; i++) {
		m.rows[i].most_percent = users[m.rows[i].uid].percent;
		m.rows[i].most_leases = users[m.rows[i].uid].leases;
	}
}

static void run_plan(struct verdict verdicts[ROWS])
{
	plan_begin(&m.plan, &m.facts);
	for (size_t i = 0; i < m.count; i++)
		verdicts[i] = plan_next(&m.plan, &m.rows[i]);
}

static void random_round(unsigned round)
{
	bool has_instances = (memset(&m, 0, sizeof(m)), false);
	unsigned slots;

	m.seed = random_state = (round + 1) * UINT64_C(0x9e3779b97f4a7c15);
	has_instances = chance(20);
	slots = 1 + below(SLOTS);
	for (unsigned slot = 0; slot < slots; slot++)
		random_gpu(slot, has_instances);
	random_links();
	m.facts = (struct plan_facts){ .gpus = m.gpus,
		.links = chance(50) ? &m.links : NULL,
		.now_ms = NOW_MS,
		.margin_mib = MARGIN_MIB,
		.users = m.users,
		.user_count = USERS };
	for (unsigned i = 0; i < USERS; i++)
		m.users[i] = (struct plan_user){
			.uid = i, .percent = below(300), .leases = below(3)
		};
	if (chance(30))
		m.facts.limits = (struct plan_limits){ below(500), below(5), below(900),
			below(12), CARD_MIB };
	m.count = 1 + below(ROWS);
	for (unsigned i = 0; i < m.count; i++)
		random_row(i);
	if (chance(25))
		random_own_limits();
	run_plan(m.verdicts);
}

/* --- telling what is wrong ------------------------------------------------------------ */

static void print_round(void)
{
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		const struct plan_gpu *gpu = &m.gpus[slot];

		if (!gpu->exists)
			continue;
		print_message("GPU %u: state %d total %d foreign %d settling %d%s%s%s\n",
			slot, (int)gpu->state, (int)gpu->total_mib, (int)gpu->foreign_mib,
			(int)gpu->settling_mib, gpu->is_instance ? " instance" : "",
			gpu->is_solo ? " solo" : "", gpu->is_busy ? " busy" : "");
		for (unsigned i = 0; i < gpu->use_count; i++)
			print_message("	%u %% %d MiB until %d s%s\n",
				gpu->uses[i].percent, (int)gpu->uses[i].mib,
				(int)(gpu->uses[i].end_ms - NOW_MS) / 1000,
				gpu->uses[i].is_dead ? ", dead" : "");
	}
	for (size_t i = 0; i < m.count; i++)
		print_message(
			"row %zu: %u x %u %% %d MiB, limit %d s, allow %x, uid %u, hold "
			"%d: verdict %d on %x, start %d s\n",
			i, m.rows[i].gpus, m.rows[i].need.percent,
			(int)m.rows[i].need.mib,
			(int)(m.rows[i].limit_ms + m.rows[i].grace_ms) / 1000,
			(unsigned)m.rows[i].allow.bits[0], m.rows[i].uid,
			(int)m.rows[i].hold, (int)m.verdicts[i].kind,
			(unsigned)m.verdicts[i].gpus.bits[0],
			(int)(m.verdicts[i].start_ms - NOW_MS) / 1000);
}

#define CHECK(holds, ...)                            \
	do {                                         \
		if (!(holds)) {                      \
			print_round();               \
			print_message(__VA_ARGS__);  \
			fail_msg(": !(%s)", #holds); \
		}                                    \
	} while (0)

/* --- the rules, told again ------------------------------------------------------------ */

static uint64_t counted_mib(unsigned percent, uint64_t mib, uint64_t total_mib)
{
	return mib ? mib : total_mib * percent / WHOLE_PERCENT;
}

/* What lies on a GPU. */
struct load {
	unsigned percent, leases;
	uint64_t mib;
	bool is_declared; /* memory of any lease on it */
};

static void load_add(struct load *load, unsigned percent, uint64_t mib, bool is_declared,
	uint64_t total_mib)
{
	load->percent += percent;
	load->mib += counted_mib(percent, mib, total_mib);
	load->leases++;
	load->is_declared |= is_declared;
}

static bool load_leaves(
	const struct load *load, const struct plan_gpu *gpu, const struct need *need)
{
	uint64_t more = counted_mib(need->percent, need->mib, gpu->total_mib);

	if (load->leases >= ROOM_LEASES ||
		(load->leases && (gpu->is_solo || need->percent == WHOLE_PERCENT)))
		return false;
	if (need->percent == WHOLE_PERCENT)
		return true;
	/* of a card of unknown size only shares can be had */
	return load->percent + need->percent <= WHOLE_PERCENT &&
	       (gpu->total_mib ? load->mib + gpu->foreign_mib + more +
						 (need->mib || load->is_declared
								 ? MARGIN_MIB
								 : 0) <=
					 gpu->total_mib
			       : !need->mib);
}

static bool has_over(const struct plan_row *row, int64_t at_ms)
{
	return row->limit_ms && NOW_MS + row->limit_ms + row->grace_ms <= at_ms;
}

/* At @at_ms, beside the leases and those of the rows [@from, @to) that have started. */
static struct load load_at(int slot, int64_t at_ms, size_t from, size_t to)
{
	const struct plan_gpu *gpu = &m.gpus[slot];
	struct load load = { 0 };

	for (unsigned i = 0; i < gpu->use_count; i++)
		if (at_ms != INT64_MAX && !(m.is_cleared && gpu->uses[i].is_dead) &&
			(!gpu->uses[i].end_ms || gpu->uses[i].end_ms > at_ms))
			load_add(&load, gpu->uses[i].percent, gpu->uses[i].mib,
				gpu->uses[i].is_declared, gpu->total_mib);
	if (at_ms != INT64_MAX && !m.is_cleared)
		load.mib += gpu->settling_mib;
	for (size_t i = from; i < to; i++)
		if (gpuset_has(&m.verdicts[i].gpus, (unsigned)slot) &&
			(at_ms == INT64_MAX || !has_over(&m.rows[i], at_ms)))
			load_add(&load, m.rows[i].need.percent, m.rows[i].need.mib,
				m.rows[i].need.mib != 0, gpu->total_mib);
	return load;
}

/* Whether the state is such that only leases stand between the GPU and @row. */
static bool admits(const struct plan_row *row, int slot, bool now)
{
	const struct plan_gpu *gpu = &m.gpus[slot];
	bool is_whole = row->need.percent == WHOLE_PERCENT;

	if (!gpu->exists || !gpuset_has(&row->allow, (unsigned)slot) ||
		(gpu->is_instance && row->gpus > 1))
		return false;
	if (is_whole || gpu->is_solo)
		return now ? gpu->state == GPU_FREE : gpu->state <= GPU_SETTLING;
	if (gpu->state == GPU_EXTERNAL)
		return row->need.percent == 0 && !gpu->is_busy;
	return gpu->state <= (now ? GPU_LINGERING : GPU_SETTLING) &&
	       !(row->need.percent && (gpu->foreign_mib || (now && gpu->settling_mib)));
}

/* --- what holds ----------------------------------------------------------------------- */

/* No GPU over its capacity, only those that may be had, the right number of them. */
static void check_starts(void)
{
	for (size_t i = 0; i < m.count; i++) {
		const struct plan_row *row = &m.rows[i];
		const struct verdict *verdict = &m.verdicts[i];

		if (verdict->kind != VERDICT_START) {
			CHECK(gpuset_is_empty(&verdict->gpus), "row %zu", i);
			continue;
		}
		CHECK(gpuset_count(&verdict->gpus) == row->gpus, "row %zu", i);
		gpuset_for_each (slot, &verdict->gpus) {
			struct load load = load_at(slot, INT64_MIN, 0, i);

			CHECK(admits(row, slot, true), "row %zu, GPU %d", i, slot);
			CHECK(load_leaves(&load, &m.gpus[slot], &row->need),
				"row %zu, GPU %d", i, slot);
			for (unsigned j = 0; j < m.gpus[slot].use_count; j++)
				CHECK(m.gpus[slot].uses[j].percent < WHOLE_PERCENT,
					"row %zu, GPU %d", i, slot);
			for (size_t j = 0; j < i; j++)
				CHECK(m.rows[j].need.percent < WHOLE_PERCENT ||
						!gpuset_has(&m.verdicts[j].gpus,
							(unsigned)slot),
					"rows %zu and %zu, GPU %d", i, j, slot);
		}
	}
}

/* What a lease of @row on these GPUs counts for the limits, in percent. */
static unsigned limit_percent(const struct plan_row *row, const struct gpuset *gpus)
{
	unsigned most = quota_percent(1, &row->need, m.facts.limits.gpu_mib);

	gpuset_for_each (slot, gpus) {
		unsigned here = quota_gpu_percent(&m.gpus[slot], &row->need);

		most = here > most ? here : most;
	}
	return most * row->gpus;
}

/* The limits of the row's user: those of its ticket, else those of the configuration; 0: none. */
static unsigned most_percent_of(const struct plan_row *row)
{
	if (row->most_percent == PLAN_NO_LIMIT)
		return 0;
	return row->most_percent ? row->most_percent : m.facts.limits.user_percent;
}

static unsigned most_leases_of(const struct plan_row *row)
{
	if (row->most_leases == PLAN_NO_LIMIT)
		return 0;
	return row->most_leases ? row->most_leases : m.facts.limits.user_leases;
}

/* Whether @used leaves @more percent and a lease of what the limits allow; 0: any number. */
static bool limits_leave(
	unsigned more, const struct plan_user *used, unsigned percent, unsigned leases)
{
	return (!percent || used->percent + more <= percent) &&
	       (!leases || used->leases < leases);
}

/* Whether the limits allow the row @head the GPU at @at_ms, beside started rows [@from, @to). */
static bool head_is_allowed(size_t head, int slot, int64_t at_ms, size_t from, size_t to)
{
	struct gpuset gpu = { { UINT64_C(1) << slot } };
	const struct plan_limits *limits = &m.facts.limits;
	const struct plan_row *row = &m.rows[head];
	struct plan_user all = { 0 }, own = { 0 };
	unsigned more = limit_percent(row, &gpu);

	for (size_t i = 0; i < USERS; i++) {
		const struct plan_user *user = &m.users[i];

		all.percent += user->percent;
		all.leases += user->leases;
		if (user->uid == row->uid)
			own = *user;
	}
	for (size_t i = from; i < to; i++) {
		const struct plan_row *other = &m.rows[i];

		if (m.verdicts[i].kind != VERDICT_START ||
			(at_ms != INT64_MAX && has_over(other, at_ms)))
			continue;
		all.percent += limit_percent(other, &m.verdicts[i].gpus);
		all.leases++;
		if (other->uid == row->uid) {
			own.percent += limit_percent(other, &m.verdicts[i].gpus);
			own.leases++;
		}
	}
	return limits_leave(more, &all, limits->all_percent, limits->all_leases) &&
	       (row->uid == 0 || limits_leave(more, &own, most_percent_of(row),
					 most_leases_of(row)));
}

/* Whether the row @head has its GPUs at @at_ms, beside started rows [@from, @to). */
static bool head_fits(size_t head, int64_t at_ms, size_t from, size_t to)
{
	const struct plan_row *row = &m.rows[head];
	unsigned count = 0;

	for (int slot = 0; slot < SLOTS; slot++) {
		struct load load = load_at(slot, at_ms, from, to);
		bool has_end =
			m.is_cleared || (m.gpus[slot].state != GPU_LINGERING &&
						m.gpus[slot].state != GPU_SETTLING &&
						!m.gpus[slot].settling_mib);

		count += admits(row, slot, false) && (has_end || at_ms == INT64_MAX) &&
			 head_is_allowed(head, slot, at_ms, from, to) &&
			 load_leaves(&load, &m.gpus[slot], &row->need);
	}
	return count >= row->gpus;
}

/* The first moment at which it fits if all run to their limits; INT64_MAX: none. */
static int64_t head_start(size_t head, size_t to)
{
	int64_t first_ms = INT64_MAX;

	if (head_fits(head, NOW_MS, 0, to))
		return NOW_MS;
	for (unsigned slot = 0; slot < SLOTS; slot++)
		for (unsigned i = 0; i < m.gpus[slot].use_count; i++) {
			int64_t end_ms = m.uses[slot][i].end_ms;

			if (end_ms > NOW_MS && end_ms < first_ms &&
				head_fits(head, end_ms, 0, to))
				first_ms = end_ms;
		}
	for (size_t i = 0; i < to; i++) {
		int64_t end_ms = NOW_MS + m.rows[i].limit_ms + m.rows[i].grace_ms;

		if (m.verdicts[i].kind == VERDICT_START && m.rows[i].limit_ms &&
			end_ms < first_ms && head_fits(head, end_ms, 0, to))
			first_ms = end_ms;
	}
	return first_ms;
}

/* The row of the plan's head @i. */
static size_t row_of_head(unsigned i)
{
	size_t row = 0;

	while (row < m.count && m.rows[row].ticket != m.plan.heads[i].ticket)
		row++;
	assert_true(row < m.count);
	return row;
}

/* A row that starts after a head in the queue does not make that head start later. */
static void check_head(size_t head, int64_t promised_ms)
{
	int64_t without_ms = head_start(head, head), with_ms = head_start(head, m.count);

	CHECK(with_ms <= without_ms, "head %zu: %d s instead of %d s", head,
		(int)(with_ms - NOW_MS) / 1000, (int)(without_ms - NOW_MS) / 1000);
	if (promised_ms)
		CHECK(with_ms <= promised_ms, "head %zu", head);
	else
		CHECK(head_fits(head, INT64_MAX, head + 1, m.count), "head %zu", head);
}

static void check_first_head(void)
{
	const struct plan_head *head = &m.plan.heads[0];

	if (!m.plan.head_count)
		return;
	CHECK(m.verdicts[row_of_head(0)].start_ms == head->start_ms, "first head");
	check_head(row_of_head(0), head->start_ms);
}

/* The same once what is left of jobs that have ended is gone, as soon as this plan is made. */
static void check_cleared_head(void)
{
	size_t head;

	if (!m.plan.head_count)
		return;
	head = row_of_head(0);
	m.is_cleared = true;
	CHECK(head_start(head, m.count) <= head_start(head, head), "head %zu", head);
}

/* Each head's GPUs are its own, and enough; rows are heads in their order. */
static void check_heads(void)
{
	struct gpuset all = GPUSET_NONE;
	unsigned count = 0;

	for (size_t i = 0; i < m.count; i++) {
		const struct plan_head *head = &m.plan.heads[count];
		struct gpuset common;

		if (m.verdicts[i].kind != VERDICT_LEASED)
			continue;
		CHECK(count < m.plan.head_count && head->ticket == m.rows[i].ticket,
			"row %zu", i);
		CHECK(m.verdicts[i].is_first == (count == 0), "row %zu", i);
		CHECK(gpuset_count(&head->reserved) >= m.rows[i].gpus, "row %zu", i);
		common = gpuset_and(&all, &head->reserved);
		CHECK(gpuset_is_empty(&common), "row %zu", i);
		gpuset_for_each (slot, &head->reserved)
			CHECK(admits(&m.rows[i], slot, false), "row %zu, GPU %d", i,
				slot);
		all = gpuset_or(&all, &head->reserved);
		count++;
	}
	CHECK(count == m.plan.head_count, "heads");
	CHECK(gpuset_equals(&all, &m.plan.reserved), "reserved");
}

static bool is_equal_request(const struct plan_row *a, const struct plan_row *b)
{
	return a->gpus == b->gpus && a->need.percent == b->need.percent &&
	       a->need.mib == b->need.mib && a->limit_ms == b->limit_ms &&
	       a->grace_ms == b->grace_ms && a->uid == b->uid &&
	       gpuset_equals(&a->allow, &b->allow) && a->hold == b->hold;
}

static void check_order(void)
{
	for (size_t i = 0; i < m.count; i++)
		for (size_t j = i + 1; j < m.count; j++)
			if (is_equal_request(&m.rows[i], &m.rows[j]))
				CHECK(m.verdicts[i].kind == VERDICT_START ||
						m.verdicts[j].kind != VERDICT_START,
					"rows %zu and %zu", i, j);
}

/* Whether something else than a state keeps @row from enough GPUs. */
static bool asks_for_too_much(const struct plan_row *row)
{
	unsigned count = 0;

	for (int slot = 0; slot < SLOTS; slot++) {
		struct load none = { 0 };
		struct plan_gpu gpu = m.gpus[slot];

		gpu.foreign_mib = 0;
		count += gpu.exists && gpuset_has(&row->allow, (unsigned)slot) &&
			 !(gpu.is_instance && row->gpus > 1) &&
			 load_leaves(&none, &gpu, &row->need);
	}
	return count < row->gpus;
}

/* Whether that ticket is held back by a limit that binds @row as well. */
static bool is_limited_ahead(size_t i, uint64_t ticket)
{
	for (size_t at = 0; at < i; at++) {
		enum limit_kind kind = m.verdicts[at].limit.kind;

		if (m.rows[at].ticket == ticket)
			return m.verdicts[at].kind == VERDICT_LIMIT &&
			       (m.rows[at].uid == m.rows[i].uid ||
				       kind == LIMIT_ALL_GPUS ||
				       kind == LIMIT_ALL_LEASES);
	}
	return false;
}

static bool is_head(uint64_t ticket)
{
	unsigned i = 0;

	while (i < m.plan.head_count && m.plan.heads[i].ticket != ticket)
		i++;
	return i < m.plan.head_count;
}

static void check_reason(size_t i)
{
	const struct plan_row *row = &m.rows[i];
	const struct verdict *verdict = &m.verdicts[i];

	CHECK(verdict->wanted == row->gpus || row->hold != DEPENDENCY_NONE, "row %zu", i);
	CHECK((verdict->kind == VERDICT_HELD) == (row->hold != DEPENDENCY_NONE),
		"row %zu", i);
	switch (verdict->kind) {
	case VERDICT_START:
		break;
	case VERDICT_LEASED:
		CHECK(!verdict->behind || (is_head(verdict->behind) &&
						  verdict->behind < row->ticket),
			"row %zu", i);
		break;
	case VERDICT_BEHIND:
		if (!verdict->behind_gpus) {
			CHECK(is_limited_ahead(i, verdict->behind), "row %zu", i);
			break;
		}
		CHECK(is_head(verdict->behind) && verdict->behind < row->ticket &&
				(verdict->behind_need.percent ||
					verdict->behind_need.mib),
			"row %zu", i);
		break;
	case VERDICT_GPU:
		CHECK(verdict->state != GPU_FREE || asks_for_too_much(row), "row %zu", i);
		CHECK(verdict->state == GPU_FREE ||
				(m.gpus[verdict->slot].exists &&
					gpuset_has(&row->allow, verdict->slot)),
			"row %zu", i);
		break;
	case VERDICT_HELD:
		CHECK(verdict->hold == row->hold && verdict->held_by == row->held_by,
			"row %zu", i);
		break;
	case VERDICT_LIMIT:
		CHECK(verdict->limit.kind < LIMIT_KINDS && verdict->limit.most, "row %zu",
			i);
		break;
	}
}

static void check_reasons(void)
{
	for (size_t i = 0; i < m.count; i++)
		check_reason(i);
}

/* A user above a limit gets nothing, and no start puts a user above a limit. */
static void check_limits(void)
{
	const struct plan_limits *limits = &m.facts.limits;
	struct plan_user all = { 0 }, users[USERS];

	memcpy(users, m.users, sizeof(users));
	for (size_t i = 0; i < USERS; i++) {
		all.percent += users[i].percent;
		all.leases += users[i].leases;
	}
	for (size_t i = 0; i < m.count; i++) {
		struct plan_user *user = &users[m.rows[i].uid];

		if (m.verdicts[i].kind != VERDICT_START)
			continue;
		all.percent += limit_percent(&m.rows[i], &m.verdicts[i].gpus);
		user->percent += limit_percent(&m.rows[i], &m.verdicts[i].gpus);
		all.leases++;
		user->leases++;
		CHECK(!limits->all_percent || all.percent <= limits->all_percent, "%zu",
			i);
		CHECK(!limits->all_leases || all.leases <= limits->all_leases, "%zu", i);
		if (user->uid == 0)
			continue;
		CHECK(!most_percent_of(&m.rows[i]) ||
				user->percent <= most_percent_of(&m.rows[i]),
			"%zu", i);
		CHECK(!most_leases_of(&m.rows[i]) ||
				user->leases <= most_leases_of(&m.rows[i]),
			"%zu", i);
	}
}

/* The easiest needs: if any job fits on a GPU, one of these does. */
static const struct plan_row easy_rows[] = {
	{ .gpus = 1, .need = { .percent = 1 }, .limit_ms = 1 },
	{ .gpus = 1, .need = { .mib = 1 }, .limit_ms = 1 },
	{ .gpus = 1, .need = { .percent = 1, .mib = 1 }, .limit_ms = 1 },
	{ .gpus = 1, .need = NEED_WHOLE, .limit_ms = 1 },
	{ .gpus = 1, .need = { .percent = 1 } },
	{ .gpus = 1, .need = { .mib = 1 } },
	{ .gpus = 1, .need = NEED_WHOLE },
};

static void check_closed(void)
{
	static struct plan plan, closed;
	bool is_closed = false;

	plan_begin(&plan, &m.facts);
	for (size_t i = 0; i < m.count; i++) {
		CHECK(!is_closed || m.verdicts[i].kind != VERDICT_START, "row %zu", i);
		(void)plan_next(&plan, &m.rows[i]);
		if (is_closed || !plan_is_closed(&plan))
			continue;
		is_closed = true;
		for (size_t j = 0; j < ARRAY_SIZE(easy_rows); j++) {
			struct plan_row row = easy_rows[j];

			row.allow = GPUSET_ALL;
			closed = plan;
			CHECK(plan_next(&closed, &row).kind != VERDICT_START,
				"behind row %zu, easy row %zu", i, j);
		}
	}
}

static bool verdict_equals(const struct verdict *a, const struct verdict *b)
{
	return a->kind == b->kind && gpuset_equals(&a->gpus, &b->gpus) &&
	       a->wanted == b->wanted && a->free == b->free &&
	       a->best.percent == b->best.percent && a->best.mib == b->best.mib &&
	       a->best.leases == b->best.leases && a->behind == b->behind &&
	       a->behind_gpus == b->behind_gpus && a->start_ms == b->start_ms &&
	       a->state == b->state && a->slot == b->slot && a->hold == b->hold &&
	       a->held_by == b->held_by && a->limit.kind == b->limit.kind &&
	       a->limit.most == b->limit.most && a->limit.used == b->limit.used;
}

static void check_same(const char *what)
{
	struct verdict again[ROWS];

	run_plan(again);
	for (size_t i = 0; i < m.count; i++)
		CHECK(verdict_equals(&m.verdicts[i], &again[i]), "%s: row %zu", what, i);
}

/* The order in which leases and users are found changes nothing, nor does chance. */
static void check_sameness(void)
{
	check_same("again");
	for (unsigned slot = 0; slot < SLOTS; slot++)
		for (unsigned i = m.gpus[slot].use_count; i > 1; i--) {
			unsigned j = below(i);
			struct plan_use use = m.uses[slot][j];

			m.uses[slot][j] = m.uses[slot][i - 1];
			m.uses[slot][i - 1] = use;
		}
	for (unsigned i = USERS; i > 1; i--) {
		unsigned j = below(i);
		struct plan_user user = m.users[j];

		m.users[j] = m.users[i - 1];
		m.users[i - 1] = user;
	}
	check_same("in another order");
}

/* A row that starts with other rows ahead of it also starts alone. */
static void check_alone(void)
{
	for (size_t i = 0; i < m.count; i++)
		if (m.verdicts[i].kind == VERDICT_START)
			CHECK(plan_alone(&m.facts, &m.rows[i]).kind == VERDICT_START,
				"row %zu", i);
}

/* Whether a lease that ends now could still keep a ticket waiting, as estimates see it. */
static bool is_kept_by_more_than_leases(void)
{
	const struct plan_limits *limits = &m.facts.limits;

	for (unsigned slot = 0; slot < SLOTS; slot++)
		if (m.gpus[slot].state <= GPU_LEASED && m.gpus[slot].foreign_mib)
			return true;
	for (size_t i = 0; i < m.count; i++)
		if (m.rows[i].most_percent || m.rows[i].most_leases)
			return true;
	return limits->user_percent || limits->user_leases || limits->all_percent ||
	       limits->all_leases;
}

/*
 * Estimates agree with the plan: now for tickets that start, no later than promised for the head.
 */
static void check_estimates(void)
{
	bool has_more = is_kept_by_more_than_leases();
	int64_t start_ms[ROWS];

	assert_int_equal(estimate_starts(&m.facts, m.rows, m.count, start_ms), 0);
	for (size_t i = 0; i < m.count; i++) {
		bool starts = m.verdicts[i].kind == VERDICT_START;

		CHECK(!starts || start_ms[i] == NOW_MS, "row %zu", i);
		CHECK(!start_ms[i] || start_ms[i] >= NOW_MS, "row %zu", i);
		CHECK(m.rows[i].hold == DEPENDENCY_NONE || !start_ms[i], "row %zu", i);
		if (m.verdicts[i].is_first && m.plan.heads[0].start_ms && !has_more)
			CHECK(start_ms[i] && start_ms[i] <= m.plan.heads[0].start_ms,
				"head %zu: estimate %d s", i,
				(int)(start_ms[i] - NOW_MS) / 1000);
	}
}

/* --- running them --------------------------------------------------------------------- */

static void check_all(void (*check)(void))
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		random_round(round);
		check();
	}
}

#define PROPERTY(name, check)          \
	static void name(void **state) \
	{                              \
		(void)state;           \
		check_all(check);      \
	}

PROPERTY(nobody_gets_what_is_not_there, check_starts)
PROPERTY(no_later_row_delays_the_first_head, check_first_head)
PROPERTY(nor_once_nothing_is_left_of_those_who_have_ended, check_cleared_head)
PROPERTY(each_head_has_gpus_of_its_own, check_heads)
PROPERTY(equal_requests_start_in_their_order, check_order)
PROPERTY(who_does_not_start_is_told_why, check_reasons)
PROPERTY(nobody_gets_above_a_limit, check_limits)
PROPERTY(behind_a_closed_plan_nobody_starts, check_closed)
PROPERTY(the_same_facts_give_the_same_plan_in_any_order, check_sameness)
PROPERTY(who_starts_behind_others_starts_alone, check_alone)
PROPERTY(estimates_agree_with_the_plan, check_estimates)

/* --- whoever acts first ---------------------------------------------------------------- */

/* What acting changes, and which rows have acted. */
struct present {
	struct plan_gpu gpus[SLOTS];
	struct plan_use uses[SLOTS][USES_MOST];
	struct plan_user users[USERS];
	size_t early_count;
	bool has_acted[ROWS], has_taken_external;
};

static struct present present;
static struct plan_early early[ROWS];

static void plan_present(struct verdict verdicts[ROWS])
{
	plan_begin(&m.plan, &m.facts);
	for (size_t i = 0; i < m.count; i++)
		if (!present.has_acted[i])
			verdicts[i] = plan_next(&m.plan, &m.rows[i]);
}

static bool starts_on_gpus(size_t i, const struct verdict *verdict)
{
	return !present.has_acted[i] && verdict->kind == VERDICT_START && m.rows[i].gpus;
}

/* Writes the lease of row @k into the file of the GPU. */
static void lease_gpu(size_t k, int slot, uint16_t early_number)
{
	const struct plan_row *row = &m.rows[k];
	struct plan_gpu *gpu = &m.gpus[slot];

	gpu->uses = m.uses[slot];
	m.uses[slot][gpu->use_count++] = (struct plan_use){
		.percent = row->need.percent,
		.mib = counted_mib(row->need.percent, row->need.mib, gpu->total_mib),
		.is_declared = row->need.mib != 0,
		.early = early_number,
		.end_ms = row->limit_ms ? NOW_MS + row->limit_ms + row->grace_ms : 0,
	};
	present.has_taken_external |= gpu->state == GPU_EXTERNAL;
	gpu->state = GPU_LEASED;
	gpu->is_just_released = gpu->is_busy = false;
}

/* Row @k of the plan writes its lease. */
static void act(size_t k, const struct verdict verdicts[ROWS])
{
	const struct plan_row *row = &m.rows[k];
	unsigned percent = limit_percent(row, &verdicts[k].gpus);
	bool is_early = false;

	for (size_t i = 0; i < k; i++)
		is_early |= starts_on_gpus(i, &verdicts[i]);
	if (is_early)
		early[m.facts.early_count++] = (struct plan_early){ .place = row->place,
			.since_ms = NOW_MS,
			.uid = row->uid,
			.percent = percent };
	gpuset_for_each (slot, &verdicts[k].gpus)
		lease_gpu(k, slot, is_early ? (uint16_t)m.facts.early_count : 0);
	for (size_t i = 0; i < USERS; i++)
		if (m.users[i].uid == row->uid) {
			m.users[i].leases++;
			m.users[i].percent += percent;
		}
	present.has_acted[k] = true;
}

/*
 * Why a row behind the one that has acted may not start any more: a row ahead of it starts that did
 * not before; or a GPU that was used outside gpulease is leased now, and so a row reserves it.
 */
static bool is_overtaken(
	size_t i, const struct verdict before[ROWS], const struct verdict after[ROWS])
{
	bool found = present.has_taken_external;

	for (size_t j = 0; j < i; j++)
		found |= starts_on_gpus(j, &after[j]) && before[j].kind != VERDICT_START;
	return found;
}

/* Row @k acts: those ahead of it start where they would have started, those behind it start. */
static void check_act(
	size_t k, const struct verdict before[ROWS], struct verdict after[ROWS])
{
	act(k, before);
	plan_present(after);
	for (size_t i = 0; i < m.count; i++) {
		if (!starts_on_gpus(i, &before[i]))
			continue;
		CHECK(after[i].kind == VERDICT_START ||
				(i > k && is_overtaken(i, before, after)),
			"row %zu, after %zu has acted", i, k);
		CHECK(i > k || gpuset_equals(&before[i].gpus, &after[i].gpus),
			"row %zu, after %zu has acted: GPUs %x instead of %x", i, k,
			(unsigned)after[i].gpus.bits[0],
			(unsigned)before[i].gpus.bits[0]);
	}
}

static void keep(struct present *to)
{
	*to = present;
	to->early_count = m.facts.early_count;
	memcpy(to->gpus, m.gpus, sizeof(to->gpus));
	memcpy(to->uses, m.uses, sizeof(to->uses));
	memcpy(to->users, m.users, sizeof(to->users));
}

static void put_back(const struct present *from)
{
	present = *from;
	m.facts.early_count = from->early_count;
	memcpy(m.gpus, from->gpus, sizeof(from->gpus));
	memcpy(m.uses, from->uses, sizeof(from->uses));
	memcpy(m.users, from->users, sizeof(from->users));
}

static void check_any_acts_first(void)
{
	struct verdict plans[2][ROWS];
	struct present begin;

	m.facts.early = early;
	/* hardly any GPU is free with so much of others on it; a lease would hide that it was */
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		struct plan_gpu *gpu = &m.gpus[slot];

		if (gpu->use_count &&
			(gpu->state == GPU_EXTERNAL || gpu->state == GPU_SETTLING))
			gpu->state = GPU_LEASED;
		if (gpu->state == GPU_FREE)
			gpu->foreign_mib = gpu->settling_mib = 0;
	}
	for (size_t i = 0; i < m.count; i++)
		m.rows[i].place = (struct queue_place){ .number = m.rows[i].ticket };
	memset(&present, 0, sizeof(present));
	memset(plans, 0, sizeof(plans));
	keep(&begin);
	plan_present(plans[0]);
	memcpy(m.verdicts, plans[0], sizeof(m.verdicts));
	for (size_t k = 0; k < m.count; k++)
		if (starts_on_gpus(k, &plans[0][k])) {
			check_act(k, plans[0], plans[1]);
			put_back(&begin);
		}
	/* and one after the other */
	for (unsigned now = 0;; now = !now) {
		size_t ready[ROWS], count = 0;

		for (size_t k = 0; k < m.count; k++)
			if (starts_on_gpus(k, &plans[now][k]))
				ready[count++] = k;
		if (!count)
			break;
		check_act(ready[below((unsigned)count)], plans[now], plans[!now]);
	}
	put_back(&begin);
}

PROPERTY(any_row_of_the_plan_may_act_first, check_any_acts_first)

/* Properties of plans in which nothing happens would say little. */
static void the_rounds_have_all_kinds_of_verdicts(void **state)
{
	unsigned kinds[VERDICT_LIMIT + 1] = { 0 }, closed = 0, backfilled = 0,
				       bounded = 0, several = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		bool has_head = false;

		random_round(round);
		closed += plan_is_closed(&m.plan);
		bounded += m.plan.head_count && m.plan.heads[0].start_ms > NOW_MS;
		several += m.plan.head_count > 1;
		for (size_t i = 0; i < m.count; i++) {
			kinds[m.verdicts[i].kind]++;
			has_head |= m.verdicts[i].is_first;
			backfilled += has_head && m.verdicts[i].kind == VERDICT_START;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_in_range(kinds[i], ROUNDS / 10, ROUNDS * ROWS);
	assert_in_range(closed, ROUNDS / 10, ROUNDS);
	assert_in_range(bounded, ROUNDS / 10, ROUNDS);
	assert_in_range(backfilled, ROUNDS / 10, ROUNDS * ROWS);
	assert_in_range(several, ROUNDS / 10, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rounds_have_all_kinds_of_verdicts),
		cmocka_unit_test(nobody_gets_what_is_not_there),
		cmocka_unit_test(no_later_row_delays_the_first_head),
		cmocka_unit_test(nor_once_nothing_is_left_of_those_who_have_ended),
		cmocka_unit_test(each_head_has_gpus_of_its_own),
		cmocka_unit_test(equal_requests_start_in_their_order),
		cmocka_unit_test(who_does_not_start_is_told_why),
		cmocka_unit_test(nobody_gets_above_a_limit),
		cmocka_unit_test(behind_a_closed_plan_nobody_starts),
		cmocka_unit_test(the_same_facts_give_the_same_plan_in_any_order),
		cmocka_unit_test(who_starts_behind_others_starts_alone),
		cmocka_unit_test(estimates_agree_with_the_plan),
		cmocka_unit_test(any_row_of_the_plan_may_act_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
