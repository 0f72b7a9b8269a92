#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "policy.h"

/* The verdict on @row alone, as if every other waiting ticket were passed over. */
static struct verdict plan_alone(const struct plan_facts *on, const struct plan_row *row)
{
	static struct plan plan;

	plan_begin(&plan, on);
	return plan_next(&plan, row);
}

enum { NOW_MS = 1000000, S = 1000, MARGIN_MS = 5000 };

/* --- made-up machines --------------------------------------------------------------- */

static struct plan_gpu gpus[GPUSET_MAX];
static struct plan_use uses[GPUSET_MAX];
static struct plan_facts facts;

/* A GPU with one lease, for all of it. */
static void lease_whole(unsigned slot, int64_t end_ms)
{
	uses[slot] = (struct plan_use){ .percent = WHOLE_PERCENT, .end_ms = end_ms };
	gpus[slot].uses = &uses[slot];
	gpus[slot].use_count = 1;
}

static void forget_gpus(void)
{
	memset(gpus, 0, sizeof(gpus));
	facts = (struct plan_facts){ .gpus = gpus, .now_ms = NOW_MS, .margin_mib = 512 };
}

/* One letter a GPU, see below. */
static void set_gpus(const char *states)
{
	forget_gpus();
	for (unsigned slot = 0; states[slot]; slot++) {
		static const struct {
			char letter;
			enum gpu_state state;
		} letters[] = { { 'F', GPU_FREE }, { 'L', GPU_LEASED },
			{ 'N', GPU_LINGERING }, { 'S', GPU_SETTLING },
			{ 'K', GPU_LOCKED }, { 'X', GPU_EXTERNAL }, { '?', GPU_UNKNOWN },
			{ 'P', GPU_PAUSED } };

		gpus[slot].exists = true;
		gpus[slot].index = slot;
		for (size_t i = 0; i < ARRAY_SIZE(letters); i++)
			if (letters[i].letter == states[slot])
				gpus[slot].state = letters[i].state;
		if (states[slot] == 'L' || states[slot] == 'N')
			lease_whole(slot, 0);
		uses[slot].is_dead = states[slot] == 'N';
	}
}

static struct gpuset set_of(const char *slots)
{
	struct gpuset out = GPUSET_NONE;

	for (; *slots; slots++)
		gpuset_add(&out, (unsigned)(*slots - '0'));
	return out;
}

static struct plan_row row_of(uint64_t ticket, uint32_t wanted)
{
	return (struct plan_row){
		.ticket = ticket, .gpus = wanted, .need = NEED_WHOLE, .allow = GPUSET_ALL
	};
}

static struct plan_row limited(uint64_t ticket, uint32_t wanted, int64_t limit_ms)
{
	struct plan_row row = row_of(ticket, wanted);

	row.limit_ms = limit_ms;
	return row;
}

static struct plan begin(const char *states)
{
	struct plan plan;

	set_gpus(states);
	plan_begin(&plan, &facts);
	return plan;
}

static struct verdict next(struct plan *plan, uint64_t ticket, uint32_t wanted)
{
	struct plan_row row = row_of(ticket, wanted);

	return plan_next(plan, &row);
}

static void check_start(const struct verdict *verdict, const char *slots)
{
	struct gpuset wanted = set_of(slots);
	char hex[GPUSET_HEX_SIZE];

	gpuset_to_hex(&verdict->gpus, hex);
	if (verdict->kind != VERDICT_START || !gpuset_equals(&verdict->gpus, &wanted))
		fail_msg("not a start on %s: verdict %d, GPUs %s", slots, verdict->kind,
			hex);
}

static void check_behind(const struct verdict *verdict, uint64_t ticket)
{
	assert_int_equal(verdict->kind, VERDICT_BEHIND);
	assert_int_equal(verdict->behind, ticket);
	assert_true(gpuset_is_empty(&verdict->gpus));
}

/* --- which ticket starts where ------------------------------------------------------ */

static void tickets_that_fit_start_in_their_order(void **state)
{
	struct plan plan = begin("FFFF");
	struct verdict one = next(&plan, 1, 1), two = next(&plan, 2, 2),
		       three = next(&plan, 3, 1);

	(void)state;
	check_start(&one, "0");
	check_start(&two, "12");
	check_start(&three, "3");
	assert_int_equal(two.wanted, 2);
	assert_int_equal(two.free, 3);
}

static void idle_gpus_come_before_those_just_released_then_the_lowest_index(void **state)
{
	struct plan plan = begin("FFFF");
	struct verdict verdict;

	(void)state;
	gpus[0].is_just_released = true;
	gpus[1].index = 9;
	gpus[2].index = 7;
	gpus[3].index = 8;
	verdict = next(&plan, 1, 1);
	check_start(&verdict, "2");
	verdict = next(&plan, 2, 2);
	check_start(&verdict, "13");
	verdict = next(&plan, 3, 1);
	check_start(&verdict, "0");
}

static void no_job_gets_a_gpu_that_it_may_not_have(void **state)
{
	struct plan plan = begin("FFFF");
	struct plan_row row = row_of(1, 2);
	struct verdict verdict;

	(void)state;
	row.allow = set_of("13");
	verdict = plan_next(&plan, &row);
	check_start(&verdict, "13");
	row = row_of(2, 1);
	row.allow = set_of("1");
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.kind, VERDICT_LEASED);
	assert_int_equal(verdict.free, 0);
	verdict = next(&plan, 3, 2);
	check_start(&verdict, "02"); /* the head's GPU is another */
}

static void gpus_that_do_not_exist_count_for_nothing(void **state)
{
	struct plan plan = begin("FF");
	struct verdict verdict = next(&plan, 1, 3);

	(void)state;
	assert_int_equal(verdict.kind, VERDICT_GPU);
	assert_int_equal(verdict.free, 2);
	plan = begin("");
	verdict = next(&plan, 1, 1);
	assert_int_equal(verdict.kind, VERDICT_GPU);
	verdict = next(&plan, 2, 0);
	check_start(&verdict, ""); /* a job without GPUs needs none */
}

/* --- the head ----------------------------------------------------------------------- */

static void the_head_keeps_what_it_waits_for(void **state)
{
	struct plan plan = begin("LLFF");
	struct verdict verdict = next(&plan, 1, 4);

	(void)state;
	assert_int_equal(verdict.kind, VERDICT_LEASED);
	assert_int_equal(plan.heads[0].ticket, 1);
	assert_int_equal(plan.first_blocked, 1);
	verdict = next(&plan, 2, 1);
	check_behind(&verdict, 1);
	assert_int_equal(verdict.free, 2);
	assert_true(plan_is_closed(&plan));
}

static struct plan_row allowed(uint64_t ticket, uint32_t wanted, const char *slots)
{
	struct plan_row row = row_of(ticket, wanted);

	row.allow = set_of(slots);
	return row;
}

static void check_head(const struct verdict *verdict, bool is_first, uint64_t behind)
{
	assert_int_equal(verdict->kind, VERDICT_LEASED);
	assert_int_equal(verdict->is_first, is_first);
	assert_int_equal(verdict->behind, behind);
}

static void check_reserved(const struct plan *plan, unsigned head, const char *slots)
{
	struct gpuset wanted = set_of(slots);

	assert_true(gpuset_equals(&plan->heads[head].reserved, &wanted));
}

static void a_head_reserves_what_is_free_first(void **state)
{
	struct plan plan = begin("LLFF");
	struct verdict verdict = next(&plan, 1, 3);

	(void)state;
	check_head(&verdict, true, 0);
	check_reserved(&plan, 0, "023");
	verdict = next(&plan, 2, 1);
	check_head(&verdict, false, 1);
	check_reserved(&plan, 1, "1");
	/* one that starts before it has no limit either */
	plan = begin("LFFF");
	(void)next(&plan, 1, 1);
	verdict = next(&plan, 2, 3);
	check_head(&verdict, true, 0);
	check_reserved(&plan, 0, "023");
	verdict = next(&plan, 3, 1);
	check_head(&verdict, false, 2);
}

static void each_blocked_ticket_reserves_gpus_of_its_own(void **state)
{
	struct plan plan = begin("LLLF");
	struct plan_row row = allowed(1, 2, "01");
	struct verdict verdict = plan_next(&plan, &row);

	(void)state;
	check_head(&verdict, true, 0);
	verdict = next(&plan, 2, 2);
	check_head(&verdict, false, 0);
	check_reserved(&plan, 0, "01");
	check_reserved(&plan, 1, "23");
	verdict = next(&plan, 3, 1);
	check_behind(&verdict, 1);
	assert_int_equal(plan.head_count, 2);
	assert_true(plan_is_closed(&plan));
}

static void a_stream_of_small_jobs_does_not_pass_the_second_in_line(void **state)
{
	struct plan plan = begin("LLF");
	struct plan_row row = allowed(1, 1, "0"), big = allowed(2, 2, "12");
	struct verdict verdict = plan_next(&plan, &row);

	(void)state;
	check_head(&verdict, true, 0);
	verdict = plan_next(&plan, &big);
	check_head(&verdict, false, 0);
	assert_int_equal(verdict.free, 1);
	assert_int_equal(verdict.start_ms, 0);
	verdict = next(&plan, 3, 1);
	check_behind(&verdict, 1);
	row = allowed(4, 1, "12");
	verdict = plan_next(&plan, &row);
	check_behind(&verdict, 2);
	assert_int_equal(verdict.behind_gpus, 2);
	assert_int_equal(verdict.free, 1);
}

static void too_few_gpus_that_are_not_reserved_are_not_reserved_either(void **state)
{
	struct plan plan = begin("LLF");
	struct plan_row row = allowed(1, 1, "0"), big = allowed(2, 2, "01");
	struct verdict verdict;

	(void)state;
	(void)plan_next(&plan, &row);
	verdict = plan_next(&plan, &big);
	check_behind(&verdict, 1);
	row.ticket = 3;
	row.allow = set_of("1");
	verdict = plan_next(&plan, &row);
	check_head(&verdict, false, 0);
	check_reserved(&plan, 1, "1");
	verdict = next(&plan, 4, 1); /* and what none needs goes to others */
	check_start(&verdict, "2");
}

static void a_ticket_kept_from_free_gpus_reserves_others(void **state)
{
	struct plan plan = begin("LFL");
	struct plan_row row = allowed(1, 2, "01");
	struct verdict verdict;

	(void)state;
	(void)plan_next(&plan, &row);
	verdict = next(&plan, 2, 1);
	check_head(&verdict, false, 1);
	assert_int_equal(verdict.free, 0);
	check_reserved(&plan, 1, "2");
}

/* GPU 0 is the first head's until 100 s, GPU 2 the second one's until 50 s; 1 and 3 are free. */
static void backfill_keeps_the_bound_of_each_head_concerned(void **state)
{
	static const struct {
		int64_t limit_ms;
		uint32_t wanted;
		const char *allow, *gets; /* NULL: nothing */
	} table[] = {
		{ 95 * S, 1, "1", "1" },
		{ 95 * S, 1, "3", NULL },
		{ 45 * S, 1, "3", "3" },
		{ 45 * S, 2, "13", "13" },
		{ 46 * S, 2, "13", NULL },
		{ 46 * S, 1, "13", "1" },
		{ 96 * S, 1, "13", NULL },
		{ 0, 1, "13", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan = begin("LFLF");
		struct plan_row one = allowed(1, 2, "01"), two = allowed(2, 2, "23");
		struct plan_row row = allowed(3, table[i].wanted, table[i].allow);
		struct verdict verdict;

		uses[0].end_ms = NOW_MS + 100 * S;
		uses[2].end_ms = NOW_MS + 50 * S;
		verdict = plan_next(&plan, &one);
		assert_int_equal(verdict.start_ms, NOW_MS + 100 * S);
		(void)plan_next(&plan, &two);
		assert_int_equal(plan.heads[1].start_ms, NOW_MS + 50 * S);
		assert_false(plan_can_be_cut(&plan));
		row.limit_ms = table[i].limit_ms;
		verdict = plan_next(&plan, &row);
		if (table[i].gets)
			check_start(&verdict, table[i].gets);
		else
			check_behind(&verdict, gpuset_has(&row.allow, 1) ? 1 : 2);
	}
}

static void nothing_is_reserved_after_rows_that_were_left_out(void **state)
{
	struct plan plan = begin("LL");
	struct verdict verdict = next(&plan, 1, 1);

	(void)state;
	assert_true(plan_can_be_cut(&plan));
	plan_cut(&plan);
	verdict = next(&plan, 9, 1);
	check_behind(&verdict, 1);
	assert_int_equal(plan.head_count, 1);
	/* without a head no ticket is behind another */
	plan = begin("PL");
	(void)next(&plan, 1, 2);
	assert_true(plan_is_closed(&plan));
	assert_false(plan_can_be_cut(&plan));
}

static void the_head_is_given_what_is_free_soonest(void **state)
{
	struct plan plan = begin("LLLLF");
	struct gpuset wanted = set_of("234");

	(void)state;
	uses[0].end_ms = 0; /* no limit: last */
	uses[1].end_ms = NOW_MS + 500 * S;
	uses[2].end_ms = NOW_MS + 300 * S;
	uses[3].end_ms = NOW_MS + 400 * S;
	(void)next(&plan, 1, 3);
	assert_true(gpuset_equals(&plan.reserved, &wanted));
	assert_int_equal(plan.heads[0].start_ms, NOW_MS + 400 * S);
}

/* --- backfill ----------------------------------------------------------------------- */

static void only_a_job_that_ends_before_the_head_could_start_goes_first(void **state)
{
	static const struct {
		int64_t limit_ms, grace_ms;
		bool starts;
	} table[] = { { 0, 0, false }, { 60 * S, 0, true },
		{ 100 * S - MARGIN_MS, 0, true }, { 100 * S - MARGIN_MS + 1, 0, false },
		{ 85 * S, 10 * S, true }, { 85 * S, 10 * S + 1, false },
		{ 100 * S, 0, false }, { 1, 200 * S, false } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan = begin("LF");
		struct plan_row row = limited(2, 1, table[i].limit_ms);
		struct verdict verdict;

		uses[0].end_ms = NOW_MS + 100 * S;
		verdict = next(&plan, 1, 2);
		assert_int_equal(verdict.kind, VERDICT_LEASED);
		assert_int_equal(plan.heads[0].start_ms, NOW_MS + 100 * S);
		row.grace_ms = table[i].grace_ms;
		verdict = plan_next(&plan, &row);
		if (table[i].starts)
			check_start(&verdict, "1");
		else
			check_behind(&verdict, 1);
	}
}

static void without_a_bound_for_the_head_no_job_goes_first(void **state)
{
	static const char *const states[] = { "LF", "NF", "SF" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		struct plan plan = begin(states[i]);
		struct plan_row row = limited(2, 1, 1);
		struct verdict verdict;

		/* the end of what lingers or settles is no lease's end */
		uses[0].end_ms = i == 0 ? 0 : NOW_MS + 1000 * S;
		(void)next(&plan, 1, 2);
		assert_int_equal(plan.heads[0].start_ms, 0);
		assert_true(plan_is_closed(&plan));
		verdict = plan_next(&plan, &row);
		check_behind(&verdict, 1);
	}
}

static void a_gpu_just_given_to_one_ahead_has_no_bound_either(void **state)
{
	struct plan plan = begin("FL");
	struct plan_row row = limited(3, 1, 1);
	struct verdict verdict = next(&plan, 1, 1);

	(void)state;
	check_start(&verdict, "0");
	uses[1].end_ms = NOW_MS + 1000 * S;
	(void)next(&plan, 2, 2);
	assert_int_equal(plan.heads[0].ticket, 2);
	assert_int_equal(plan.heads[0].start_ms, 0);
	verdict = plan_next(&plan, &row);
	check_behind(&verdict, 2);
}

/* A job that has ended has left something on GPU 1, for seconds or for hours. */
static void what_may_come_free_any_moment_is_kept_for_the_head_too(void **state)
{
	static const struct {
		const char *states;
		uint32_t wanted;
		int64_t limit_ms;
		const char *gets; /* NULL: nothing */
	} table[] = {
		{ "LSF", 2, 18000 * S,
			NULL }, /* the head may start as soon as that is gone */
		{ "LNF", 2, 18000 * S, NULL },
		{ "LSF", 2, 1, NULL },
		{ "LSFL", 3, 18000 * S, NULL }, /* or when GPU 3 is free, in an hour */
		{ "LNFL", 3, 3600 * S, NULL },
		{ "LSFL", 3, 3600 * S - MARGIN_MS, "2" },
		{ "LNFL", 3, 3600 * S - MARGIN_MS, "2" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan = begin(table[i].states);
		struct plan_row row = limited(2, 1, table[i].limit_ms);
		struct verdict verdict;

		uses[0].end_ms = NOW_MS + 36000 * S;
		uses[3].end_ms = NOW_MS + 3600 * S;
		verdict = next(&plan, 1, table[i].wanted);
		/* it may stay for ever: that is no promise */
		assert_int_equal(verdict.kind, VERDICT_LEASED);
		assert_int_equal(verdict.start_ms, NOW_MS + 36000 * S);
		verdict = plan_next(&plan, &row);
		if (table[i].gets)
			check_start(&verdict, table[i].gets);
		else
			check_behind(&verdict, 1);
	}
}

/* --- what is no lease's ------------------------------------------------------------- */

static void a_ticket_that_waits_for_a_broken_gpu_reserves_nothing(void **state)
{
	static const struct {
		const char *states;
		enum gpu_state why;
	} table[] = { { "XF", GPU_EXTERNAL }, { "PF", GPU_PAUSED }, { "KF", GPU_LOCKED },
		{ "?F", GPU_UNKNOWN } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan = begin(table[i].states);
		struct verdict verdict = next(&plan, 1, 2);

		assert_int_equal(verdict.kind, VERDICT_GPU);
		assert_int_equal(verdict.state, table[i].why);
		assert_int_equal(verdict.slot, 0);
		assert_int_equal(plan.head_count, 0);
		assert_int_equal(plan.first_blocked, 1);
		assert_false(plan_is_closed(&plan));
		verdict = next(&plan, 2, 1);
		check_start(&verdict, "1");
		assert_true(plan_is_closed(&plan));
	}
}

static void a_ticket_that_waits_for_settling_or_lingering_gpus_reserves_them(void **state)
{
	static const struct {
		const char *states;
		enum gpu_state why;
	} table[] = { { "SF", GPU_SETTLING }, { "NF", GPU_LINGERING },
		{ "LF", GPU_FREE } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan = begin(table[i].states);
		struct verdict verdict = next(&plan, 1, 2);

		assert_int_equal(verdict.kind, VERDICT_LEASED);
		assert_int_equal(
			verdict.state, table[i].why); /* a lease needs no naming */
		assert_int_equal(plan.heads[0].ticket, 1);
		verdict = next(&plan, 2, 1);
		check_behind(&verdict, 1);
	}
}

static void the_strongest_reason_is_named(void **state)
{
	struct plan plan = begin("KX?PXL");
	struct plan_row row = row_of(1, 6);
	struct verdict verdict = plan_next(&plan, &row);

	(void)state;
	assert_int_equal(verdict.state, GPU_PAUSED);
	assert_int_equal(verdict.slot, 3);
	assert_true(gpuset_is_empty(&verdict.others));
	row.allow = set_of("0145");
	row.gpus = 4;
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.state, GPU_EXTERNAL);
	assert_int_equal(verdict.slot, 1); /* the first that has it */
	row.allow = set_of("4");
	assert_true(gpuset_equals(&verdict.others, &row.allow));
}

static void a_silent_state_ends_without_an_event(void **state)
{
	(void)state;
	assert_false(gpu_state_is_silent(GPU_FREE));
	assert_false(gpu_state_is_silent(GPU_LEASED));
	assert_false(gpu_state_is_silent(GPU_PAUSED));
	assert_true(gpu_state_is_silent(GPU_LINGERING));
	assert_true(gpu_state_is_silent(GPU_SETTLING));
	assert_true(gpu_state_is_silent(GPU_LOCKED));
	assert_true(gpu_state_is_silent(GPU_EXTERNAL));
	assert_true(gpu_state_is_silent(GPU_UNKNOWN));
}

static void could_start_means_as_if_no_ticket_were_ahead(void **state)
{
	struct plan plan = begin("LLFF");
	struct plan_row row = row_of(2, 2);
	struct verdict verdict;

	(void)state;
	(void)next(&plan, 1, 4);
	verdict = plan_next(&plan, &row);
	check_behind(&verdict, 1);
	verdict = plan_alone(&facts, &row);
	check_start(&verdict, "23");
	row.gpus = 3;
	verdict = plan_alone(&facts, &row);
	assert_int_equal(verdict.kind, VERDICT_LEASED);
}

/* --- parts of a GPU ----------------------------------------------------------------- */

enum { CARD_MIB = 81920, SHARERS = 4 };

static struct plan_use sharers[GPUSET_MAX][SHARERS];

/* One more lease for a part of a GPU of 80 GiB. */
static void share_out(unsigned slot, unsigned percent, uint64_t mib, int64_t end_ms)
{
	struct plan_gpu *gpu = &gpus[slot];
	struct need need = { .percent = percent, .mib = mib };

	gpu->state = GPU_LEASED;
	gpu->uses = sharers[slot];
	sharers[slot][gpu->use_count++] = (struct plan_use){
		.percent = percent, .mib = need_mib(&need, CARD_MIB), .end_ms = end_ms
	};
}

/* So many GPUs of 80 GiB, all free. */
static void set_cards(unsigned count)
{
	forget_gpus();
	for (unsigned slot = 0; slot < count; slot++)
		gpus[slot] = (struct plan_gpu){
			.exists = true, .index = slot, .total_mib = CARD_MIB
		};
}

static struct plan_row part_of(uint64_t ticket, unsigned percent, uint64_t mib)
{
	struct plan_row row = row_of(ticket, 1);

	row.need = (struct need){ .percent = percent, .mib = mib };
	return row;
}

static struct verdict next_part(
	struct plan *plan, uint64_t ticket, unsigned percent, uint64_t mib)
{
	struct plan_row row = part_of(ticket, percent, mib);

	return plan_next(plan, &row);
}

static void parts_are_packed_and_whole_gpus_stay_whole(void **state)
{
	struct plan plan;
	struct verdict verdict;

	(void)state;
	set_cards(2);
	plan_begin(&plan, &facts);
	verdict = next_part(&plan, 1, 40, 0);
	check_start(&verdict, "0");
	verdict = next_part(&plan, 2, 0, 20480);
	check_start(&verdict, "0");
	verdict = next_part(&plan, 3, 60, 0); /* no memory for that beside the two */
	check_start(&verdict, "1");
	verdict = next_part(&plan, 4, 35, 0); /* where the least stays over */
	check_start(&verdict, "1");
	verdict = next(&plan, 5, 1);
	assert_int_equal(verdict.kind, VERDICT_LEASED);
	assert_int_equal(verdict.free, 0);
}

static void a_ticket_that_waits_for_a_part_gets_the_best_room(void **state)
{
	struct plan plan;
	struct verdict verdict;

	(void)state;
	set_cards(2);
	share_out(0, 70, 0, 0);
	share_out(1, 0, 70000, 0);
	plan_begin(&plan, &facts);
	verdict = next_part(&plan, 1, 50, 0);
	assert_int_equal(verdict.kind, VERDICT_LEASED);
	assert_int_equal(verdict.best.percent, 30);
	/* not what is free beside the share of 70 %, which is of no use to it */
	assert_int_equal(verdict.best.mib, CARD_MIB - 70000);
	assert_int_equal(verdict.best.leases, ROOM_LEASES - 1);
	assert_int_equal(verdict.start_ms, 0);
	verdict = next_part(&plan, 2, 0, 30000);
	check_head(&verdict, false, 0); /* on the other GPU */
	verdict = next_part(&plan, 3, 0, 30000);
	check_behind(&verdict, 1);
	assert_int_equal(verdict.behind_gpus, 1);
	assert_int_equal(verdict.behind_need.percent, 50);
}

static void memory_used_outside_is_named_as_the_obstacle(void **state)
{
	static const struct {
		unsigned percent;
		uint64_t mib;
		enum gpu_state other,
			wanted; /* of GPU 1, which has no room; what is named */
		uint32_t slot;
	} table[] = {
		{ 0, 60000, GPU_LEASED, GPU_EXTERNAL, 0 },
		{ 75, 0, GPU_LOCKED, GPU_EXTERNAL, 0 },
		{ 0, 60000, GPU_PAUSED, GPU_PAUSED, 1 },
		{ WHOLE_PERCENT, 0, GPU_LOCKED, GPU_LOCKED, 1 }, /* that is alone there */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan;
		struct verdict verdict;
		struct plan_row row = part_of(2, table[i].percent, table[i].mib);

		set_cards(2);
		gpus[0].foreign_mib = 30000;
		share_out(1, 90, 0, 0);
		gpus[1].total_mib = 50000;
		gpus[1].state = table[i].other;
		row.gpus = 2;
		plan_begin(&plan, &facts);
		verdict = plan_next(&plan, &row);
		assert_int_equal(verdict.kind, VERDICT_GPU);
		assert_int_equal(verdict.state, table[i].wanted);
		assert_int_equal(verdict.slot, table[i].slot);
	}
}

static void a_gpu_with_room_is_no_obstacle(void **state)
{
	struct plan plan;
	struct plan_row row = part_of(1, 0, 50000);
	struct verdict verdict;

	(void)state;
	set_cards(2);
	gpus[0].foreign_mib = 30000;
	gpus[1].state = GPU_LOCKED;
	row.gpus = 2;
	plan_begin(&plan, &facts);
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.kind, VERDICT_GPU);
	assert_int_equal(verdict.state, GPU_LOCKED);
	assert_int_equal(verdict.slot, 1);
}

static void a_ticket_that_waits_for_settling_memory_reserves_it(void **state)
{
	static const struct {
		unsigned percent;
		uint64_t mib;
		bool is_leased; /* half of it, still */
	} table[] = { { 50, 0, true }, { 0, 60000, false }, { 50, 0, false },
		{ 50, 30000, true } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan;
		struct verdict verdict;

		set_cards(1);
		gpus[0].state = GPU_SETTLING;
		gpus[0].settling_mib = 30000;
		if (table[i].is_leased)
			share_out(0, 50, 20000, 0);
		plan_begin(&plan, &facts);
		verdict = next_part(&plan, 1, table[i].percent, table[i].mib);
		assert_int_equal(verdict.kind, VERDICT_LEASED);
		assert_int_equal(verdict.state, GPU_SETTLING);
		assert_int_equal(verdict.start_ms, 0);
		verdict = next_part(&plan, 2, 0, 10240);
		check_behind(&verdict, 1);
		/* what is foreign as well is in the way whatever ends */
		gpus[0].foreign_mib = 30000;
		plan_begin(&plan, &facts);
		verdict = next_part(&plan, 1, table[i].percent, table[i].mib);
		assert_int_equal(verdict.kind, VERDICT_GPU);
	}
}

static void the_head_keeps_room_and_no_more(void **state)
{
	static const struct {
		unsigned percent;
		int64_t limit_ms;
		const char *gets; /* NULL: nothing */
	} table[] = {
		{ 40, 0, NULL },       /* would keep the head out at 100 s */
		{ 19, 0, "0" },        /* leaves it enough then */
		{ 20, 0, NULL },       /* a little too much */
		{ 40, 50 * S, "0" },   /* is gone by then */
		{ 40, 100 * S, NULL }, /* is not */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan plan;
		struct plan_row row = part_of(2, table[i].percent, 0);
		struct verdict verdict;

		set_cards(1);
		share_out(0, 20, 0, NOW_MS + 100 * S);
		share_out(0, 30, 0, 0);
		plan_begin(&plan, &facts);
		verdict = next_part(&plan, 1, 51, 0); /* 50 are free, 70 in 100 s */
		assert_int_equal(verdict.kind, VERDICT_LEASED);
		assert_int_equal(verdict.start_ms, NOW_MS + 100 * S);
		row.limit_ms = table[i].limit_ms;
		verdict = plan_next(&plan, &row);
		if (table[i].gets)
			check_start(&verdict, table[i].gets);
		else
			check_behind(&verdict, 1);
	}
}

static void beside_a_head_without_a_bound_nothing_is_given(void **state)
{
	struct plan plan;
	struct plan_row row = part_of(2, 10, 0);
	struct verdict verdict;

	(void)state;
	set_cards(1);
	share_out(0, 50, 0, 0);
	share_out(0, 30, 0, 0);
	plan_begin(&plan, &facts);
	verdict = next_part(&plan, 1, 40, 0);
	assert_int_equal(verdict.kind, VERDICT_LEASED);
	assert_int_equal(verdict.start_ms, 0);
	assert_true(plan_is_closed(&plan));
	/* whichever of the two ends first, that could keep the head out */
	verdict = plan_next(&plan, &row);
	check_behind(&verdict, 1);
}

static void several_gpus_are_never_instances(void **state)
{
	struct plan plan;
	struct verdict verdict;

	(void)state;
	set_cards(4);
	gpus[0].is_instance = gpus[1].is_instance = true;
	plan_begin(&plan, &facts);
	verdict = next(&plan, 1, 2);
	check_start(&verdict, "23");
	verdict = next(&plan, 2, 1);
	check_start(&verdict, "0");
	plan_begin(&plan, &facts);
	verdict = next(&plan, 3, 3);
	assert_int_equal(verdict.kind, VERDICT_GPU);
	verdict = next(&plan, 4, 1);
	check_start(&verdict, "0");
}

static void too_many_leases_are_reported_with_their_gpu(void **state)
{
	static struct plan_use many[ROOM_LEASES];
	struct plan plan;
	struct verdict verdict;

	(void)state;
	set_cards(2);
	lease_whole(0, 0);
	gpus[0].state = GPU_LEASED;
	for (unsigned i = 0; i < ROOM_LEASES; i++)
		many[i] = (struct plan_use){ .percent = 1 };
	gpus[1].state = GPU_LEASED;
	gpus[1].uses = many;
	gpus[1].use_count = ROOM_LEASES;
	plan_begin(&plan, &facts);
	verdict = next_part(&plan, 1, 10, 0);
	assert_int_equal(verdict.kind, VERDICT_LEASED);
	assert_int_equal(verdict.best.leases, 0);
	assert_int_equal(verdict.best.percent, 69);
	assert_int_equal(verdict.slot, 1);
}

/* --- which tickets are held back ----------------------------------------------------- */

static void a_dependent_ticket_takes_and_reserves_nothing(void **state)
{
	struct plan plan = begin("FF");
	struct plan_row row = row_of(1, 2);
	struct verdict verdict;

	(void)state;
	row.hold = DEPENDENCY_AFTER;
	row.held_by = 77;
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.kind, VERDICT_HELD);
	assert_int_equal(verdict.hold, DEPENDENCY_AFTER);
	assert_int_equal(verdict.held_by, 77);
	assert_int_equal(plan.first_blocked, 0);
	verdict = next(&plan, 2, 2);
	check_start(&verdict, "01");
}

static void a_limit_holds_later_tickets_that_it_binds(void **state)
{
	struct plan plan;
	struct plan_row row = row_of(1, 2);
	struct verdict verdict;

	(void)state;
	set_gpus("FFFF");
	facts.limits.user_percent = 200;
	plan_begin(&plan, &facts);
	row.uid = 7;
	verdict = plan_next(&plan, &row);
	check_start(&verdict, "01");
	row.ticket = 2;
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.kind, VERDICT_LIMIT);
	assert_int_equal(verdict.limit.kind, LIMIT_USER_GPUS);
	assert_int_equal(verdict.limit.used, 200);
	row.ticket = 3;
	row.gpus = 1;
	verdict = plan_next(&plan, &row);
	check_behind(&verdict, 2);
	assert_int_equal(verdict.behind_gpus, 0);
	row.uid = 8;
	verdict = plan_next(&plan, &row);
	check_start(&verdict, "2");
	assert_false(plan_is_closed(&plan));
	/* a limit for all users stops all later tickets */
	facts.limits = (struct plan_limits){ .all_leases = 1 };
	plan_begin(&plan, &facts);
	verdict = plan_next(&plan, &row);
	check_start(&verdict, "0");
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.kind, VERDICT_LIMIT);
	assert_true(plan_is_closed(&plan));
}

static void a_ticket_that_waits_for_a_broken_gpu_holds_none_within_a_limit(void **state)
{
	struct plan plan;
	struct plan_row row = row_of(2, 2);
	struct verdict verdict;

	(void)state;
	set_gpus("FFFP");
	facts.limits.all_percent = 250;
	plan_begin(&plan, &facts);
	verdict = next(&plan, 1, 1);
	check_start(&verdict, "0");
	row.allow = set_of("23");
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.kind, VERDICT_GPU);
	assert_int_equal(verdict.state, GPU_PAUSED);
	assert_int_equal(verdict.free, 1);
	verdict = next(&plan, 3, 1);
	check_start(&verdict, "1");
	/* the same where nothing but the limit and leases are in the way */
	gpus[3].state = GPU_LEASED;
	lease_whole(3, 0);
	plan_begin(&plan, &facts);
	(void)next(&plan, 1, 1);
	verdict = plan_next(&plan, &row);
	assert_int_equal(verdict.kind, VERDICT_LIMIT);
	verdict = next(&plan, 3, 1);
	check_behind(&verdict, 2);
}

static void the_head_keeps_its_part_of_a_limit(void **state)
{
	static const struct {
		struct plan_limits limits;
		uint32_t uid;
		unsigned wanted;
		int64_t limit_ms;
		const char *gets; /* NULL: nothing */
	} table[] = {
		{ { .user_percent = 400 }, 7, 2, 0,
			NULL }, /* with the head it would be 6 */
		{ { .user_percent = 500 }, 7, 1, 0, "3" },
		{ { .user_percent = 400 }, 8, 2, 0, "34" }, /* another's limit */
		/* would be gone by then; but meanwhile the head would reserve nothing */
		{ { .user_percent = 400 }, 7, 2, 9 * S, NULL },
		{ { .user_percent = 500 }, 7, 1, 9 * S, "1" },
		{ { .user_leases = 2 }, 7, 1, 0, NULL },
		{ { .user_leases = 3 }, 7, 1, 0, "3" },
		{ { .all_percent = 500 }, 8, 2, 0, NULL },
		{ { .all_percent = 600 }, 8, 2, 0, "34" },
		{ { .all_leases = 2 }, 8, 1, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct plan_user user = { .uid = 7, .percent = 100, .leases = 1 };
		struct plan plan;
		struct plan_row row = row_of(1, 3);
		struct verdict verdict;

		set_gpus("LFFFF");
		lease_whole(0, NOW_MS + 99 * S);
		facts.users = &user;
		facts.user_count = 1;
		facts.limits = table[i].limits;
		plan_begin(&plan, &facts);
		row.uid = 7;
		row.allow = set_of("012");
		verdict = plan_next(&plan, &row);
		assert_int_equal(verdict.kind, VERDICT_LEASED);
		row = limited(2, table[i].wanted, table[i].limit_ms);
		row.uid = table[i].uid;
		verdict = plan_next(&plan, &row);
		if (table[i].gets)
			check_start(&verdict, table[i].gets);
		else
			check_behind(&verdict, 1);
	}
}

static void jobs_that_pass_leave_the_head_enough_together(void **state)
{
	struct plan_user user = { .uid = 7, .percent = 100, .leases = 1 };
	struct plan plan;
	struct plan_row row = row_of(1, 2);
	struct verdict verdict;

	(void)state;
	set_gpus("LFFFF");
	lease_whole(0, NOW_MS + 99 * S);
	facts.users = &user;
	facts.user_count = 1;
	facts.limits.user_percent = 400;
	plan_begin(&plan, &facts);
	row.uid = 7;
	row.allow = set_of("01");
	assert_int_equal(plan_next(&plan, &row).kind, VERDICT_LEASED);
	row = limited(2, 1, 9 * S);
	row.uid = 7;
	verdict = plan_next(&plan, &row); /* has ended when the head starts */
	check_start(&verdict, "1");
	row = limited(3, 1, 9 * S);
	row.uid = 7;
	verdict = plan_next(&plan, &row);
	check_behind(&verdict, 1);
}

/* The leases of GPUs 0 and 1 end in so many seconds, 0: at no known time; users have a limit. */
static struct plan begin_limited(
	const char *states, int64_t first_s, int64_t second_s, unsigned user_percent)
{
	struct plan plan;

	set_gpus(states);
	uses[0].end_ms = first_s ? NOW_MS + first_s * S : 0;
	uses[1].end_ms = second_s ? NOW_MS + second_s * S : 0;
	facts.limits.user_percent = user_percent;
	plan_begin(&plan, &facts);
	return plan;
}

/* User 7 wants the GPUs @slots for @limit_ms; 0: for good. */
static struct verdict next_of_7(
	struct plan *plan, uint64_t ticket, const char *slots, int64_t limit_ms)
{
	struct plan_row row = allowed(ticket, (uint32_t)strlen(slots), slots);

	row.uid = 7;
	row.limit_ms = limit_ms;
	return plan_next(plan, &row);
}

static void all_heads_keep_their_part_of_a_limit(void **state)
{
	struct plan plan = begin_limited("LLFFFF", 50, 100, 400);
	struct verdict verdict = next_of_7(&plan, 1, "0", 0);

	(void)state;
	check_head(&verdict, true, 0);
	verdict = next_of_7(&plan, 2, "12", 0);
	check_head(&verdict, false, 0);
	verdict = next_of_7(&plan, 3, "3", 40 * S);
	check_start(&verdict, "3");
	verdict = next_of_7(&plan, 4, "4", 40 * S);
	check_behind(&verdict, 1);
}

/*
 * Ticket 4 of the plan acts before ticket 3.  Ticket 2, which is behind the head, is above the
 * limit then; but it must not hold ticket 3 back, which would have started.
 */
static void an_early_lease_makes_no_ticket_hold_others_back(void **state)
{
	const struct plan_early early = {
		.place = { .number = 4 }, .since_ms = NOW_MS, .percent = 100
	};
	struct plan_user user = { .uid = 0, .percent = 100, .leases = 1 };
	struct plan plan;
	struct plan_row rows[] = { row_of(1, 1), row_of(2, 4), row_of(3, 1) };
	struct verdict verdict;

	(void)state;
	set_gpus("LFFFL");
	rows[0].allow = set_of("0");
	rows[1].allow = set_of("0123");
	uses[4].early = 1;
	facts.early = &early;
	facts.early_count = 1;
	facts.users = &user;
	facts.user_count = 1;
	facts.limits.all_percent = 400;
	plan_begin(&plan, &facts);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		rows[i].place.number = rows[i].ticket;
	verdict = plan_next(&plan, &rows[0]);
	check_head(&verdict, true, 0);
	verdict = plan_next(&plan, &rows[1]);
	check_behind(&verdict, 1);
	verdict = plan_next(&plan, &rows[2]);
	check_start(&verdict, "1");
}

static void a_head_counts_jobs_that_passed_an_earlier_head(void **state)
{
	struct plan plan = begin_limited("LLFFF", 100, 50, 300);
	struct verdict verdict = next_of_7(&plan, 1, "0", 0);

	(void)state;
	check_head(&verdict, true, 0);
	verdict = next_of_7(&plan, 2, "3", 80 * S); /* is gone by then */
	check_start(&verdict, "3");
	verdict = next_of_7(&plan, 3, "1", 0); /* and not by this one's time */
	check_head(&verdict, false, 0);
	verdict = next_of_7(&plan, 4, "4", 0);
	check_behind(&verdict, 1);
}

static void beyond_a_limit_with_the_heads_nothing_is_reserved(void **state)
{
	struct plan plan = begin_limited("LLL", 0, 0, 200);
	struct verdict verdict = next_of_7(&plan, 1, "01", 0);

	(void)state;
	check_head(&verdict, true, 0);
	verdict = next_of_7(&plan, 2, "2", 0);
	check_behind(&verdict, 1);
	assert_int_equal(plan.head_count, 1);
	verdict = next(&plan, 3, 1); /* root is bound by no limit of a user */
	check_head(&verdict, false, 0);
}

/* --- any machine, any queue --------------------------------------------------------- */

static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 33) % below;
}

enum { ROWS = 12 };

static struct plan_row rows[ROWS];

static struct gpuset draw_set(unsigned one_in)
{
	struct gpuset out = GPUSET_NONE;

	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		if (draw(one_in))
			gpuset_add(&out, slot);
	return out;
}

static void draw_world(void)
{
	unsigned last = draw(8) ? draw(10) : GPUSET_MAX - 1;

	forget_gpus();
	for (unsigned slot = 0; slot <= last; slot++) {
		struct plan_gpu *gpu = &gpus[slot];

		gpu->exists = draw(6) != 0;
		gpu->state = GPU_FREE;
		if (draw(2))
			gpu->state = GPU_LEASED;
		else if (draw(2))
			gpu->state = (enum gpu_state)draw(GPU_STATES);
		gpu->is_just_released = draw(3) == 0;
		gpu->index = draw(12);
		if (gpu->state == GPU_LEASED || gpu->state == GPU_LINGERING)
			lease_whole(slot, draw(3) ? NOW_MS + (int64_t)draw(200) * S : 0);
	}
	for (unsigned i = 0; i < ROWS; i++) {
		rows[i] = row_of(i + 1, 1 + draw(4));
		if (draw(3) == 0)
			rows[i].allow = draw_set(3);
		if (draw(2))
			rows[i].limit_ms = 1 + (int64_t)draw(150) * S;
		if (draw(2))
			rows[i].grace_ms = 10 * S;
		if (i > 0 && draw(3) == 0) { /* equals */
			rows[i] = rows[i - 1];
			rows[i].ticket = i + 1;
		}
	}
}

static void plan_all(const struct plan_row *queue, unsigned count, struct verdict *out)
{
	struct plan plan;

	plan_begin(&plan, &facts);
	for (unsigned i = 0; i < count; i++)
		out[i] = plan_next(&plan, &queue[i]);
}

static bool is_same(const struct verdict *a, const struct verdict *b)
{
	return a->kind == b->kind && gpuset_equals(&a->gpus, &b->gpus);
}

#define CHECK(what)                                               \
	do {                                                      \
		if (!(what))                                      \
			fail_msg("seed %llu, row %u: not " #what, \
				(unsigned long long)round, i);    \
	} while (0)

static bool overlaps(const struct gpuset *a, const struct gpuset *b)
{
	struct gpuset both = gpuset_and(a, b);

	return !gpuset_is_empty(&both);
}

/* Whether it ends before each of the heads that has a GPU of @set starts. */
static bool is_backfill(
	const struct plan *plan, const struct plan_row *row, const struct gpuset *set)
{
	for (unsigned i = 0; i < plan->head_count; i++) {
		const struct plan_head *head = &plan->heads[i];

		if (overlaps(set, &head->reserved) &&
			!(head->start_ms && row->limit_ms &&
				NOW_MS + row->limit_ms + row->grace_ms + MARGIN_MS <=
					head->start_ms))
			return false;
	}
	return true;
}

/* Plans the drawn queue row by row, and looks at each step. */
static void check_world(uint64_t round)
{
	struct gpuset taken = GPUSET_NONE;
	bool was_closed = false;
	struct plan plan;

	plan_begin(&plan, &facts);
	for (unsigned i = 0; i < ROWS; i++) {
		struct gpuset reserved = plan.reserved, outside, could;
		unsigned heads = plan.head_count;
		struct verdict verdict = plan_next(&plan, &rows[i]);
		struct verdict first = plan_alone(&facts, &rows[i]);

		outside = gpuset_minus(&verdict.gpus, &rows[i].allow);
		CHECK(gpuset_is_empty(&outside));
		CHECK(!overlaps(&verdict.gpus, &taken));
		gpuset_for_each (slot, &verdict.gpus) {
			CHECK(gpus[slot].exists);
			CHECK(gpus[slot].state == GPU_FREE);
		}
		if (verdict.kind == VERDICT_START) {
			CHECK(gpuset_count(&verdict.gpus) == rows[i].gpus);
			CHECK(!was_closed);
			CHECK(first.kind == VERDICT_START);
			CHECK(is_backfill(&plan, &rows[i], &verdict.gpus));
		} else {
			CHECK(gpuset_is_empty(&verdict.gpus));
			CHECK(plan.first_blocked != 0);
			/* nothing that it could have is left lying about */
			could = gpuset_and(&plan.free, &rows[i].allow);
			could = gpuset_minus(&could, &reserved);
			CHECK(gpuset_count(&could) < rows[i].gpus);
		}
		CHECK(plan.head_count == heads + (verdict.kind == VERDICT_LEASED));
		if (verdict.kind == VERDICT_LEASED)
			CHECK(plan.heads[heads].ticket == rows[i].ticket &&
				!overlaps(&plan.heads[heads].reserved, &reserved));
		else
			CHECK(gpuset_equals(&plan.reserved, &reserved));
		if (i == 0)
			CHECK(is_same(&verdict, &first));
		taken = gpuset_or(&taken, &verdict.gpus);
		was_closed = was_closed || plan_is_closed(&plan);
	}
}

/* Of two that ask for the same, the later never starts before the earlier. */
static void check_equals(uint64_t round, const struct verdict *verdicts)
{
	for (unsigned i = 0; i < ROWS; i++)
		for (unsigned k = i + 1; k < ROWS; k++)
			if (rows[i].gpus == rows[k].gpus &&
				rows[i].limit_ms == rows[k].limit_ms &&
				rows[i].grace_ms == rows[k].grace_ms &&
				gpuset_equals(&rows[i].allow, &rows[k].allow))
				CHECK(verdicts[i].kind == VERDICT_START ||
					verdicts[k].kind != VERDICT_START);
}

/* A ticket that waits for a GPU without a lease does not change the other verdicts. */
static void check_harmless(uint64_t round, const struct verdict *verdicts)
{
	struct plan_row others[ROWS];
	struct verdict without[ROWS];
	unsigned count = 0;

	for (unsigned i = 0; i < ROWS; i++)
		if (verdicts[i].kind != VERDICT_GPU)
			others[count++] = rows[i];
	plan_all(others, count, without);
	for (unsigned i = 0, k = 0; i < ROWS; i++) {
		if (verdicts[i].kind == VERDICT_GPU)
			continue;
		CHECK(is_same(&verdicts[i], &without[k]));
		k++;
	}
}

static void no_machine_and_no_queue_break_the_rules(void **state)
{
	enum { ROUNDS = 20000 };

	(void)state;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		struct verdict verdicts[ROWS], again[ROWS];

		seed = round * 0x9e3779b97f4a7c15u;
		draw_world();
		check_world(round);
		plan_all(rows, ROWS, verdicts);
		plan_all(rows, ROWS, again);
		for (unsigned i = 0; i < ROWS; i++)
			CHECK(is_same(&verdicts[i], &again[i]));
		check_equals(round, verdicts);
		check_harmless(round, verdicts);
	}
}

/* --- and in time -------------------------------------------------------------------- */

enum { SIM_GPUS = 6, SIM_JOBS = 60 };

struct job {
	struct plan_row row;
	int64_t arrives_ms, lasts_ms;
	int64_t started_ms; /* 0: not yet */
	struct gpuset gpus;
	int64_t bound_ms; /* when it could start at the latest, once it was the head */
};

static struct job jobs[SIM_JOBS];

static void draw_jobs(void)
{
	int64_t at_ms = NOW_MS;

	for (unsigned i = 0; i < SIM_JOBS; i++) {
		struct job *job = &jobs[i];

		*job = (struct job){ .row = row_of(
					     i + 1, 1 + draw(draw(4) ? 2 : SIM_GPUS)) };
		job->arrives_ms = at_ms;
		job->lasts_ms = (1 + (int64_t)draw(100)) * S;
		if (draw(4)) {
			/* some end by themselves, some at the limit, some in the grace */
			job->row.grace_ms = 10 * S;
			job->row.limit_ms =
				max_i64(1, job->lasts_ms - draw(10) * S +
						   (draw(2) ? draw(50) * S : 0));
		}
		at_ms += (int64_t)draw(30) * S;
	}
}

static int64_t end_of(const struct job *job)
{
	return job->started_ms + job->lasts_ms;
}

static void set_leases(int64_t now_ms)
{
	set_gpus("FFFFFF");
	for (unsigned i = 0; i < SIM_JOBS; i++) {
		const struct job *job = &jobs[i];

		if (!job->started_ms || end_of(job) <= now_ms)
			continue;
		gpuset_for_each (slot, &job->gpus) {
			gpus[slot].state = GPU_LEASED;
			lease_whole((unsigned)slot,
				job->row.limit_ms ? job->started_ms + job->row.limit_ms +
							    job->row.grace_ms
						  : 0);
		}
	}
}

/* Lets all that can start do so; returns when the next thing happens, 0: never. */
static int64_t step(uint64_t round, int64_t now_ms)
{
	int64_t next_ms = INT64_MAX;
	struct plan plan;

	set_leases(now_ms);
	facts.now_ms = now_ms;
	plan_begin(&plan, &facts);
	for (unsigned i = 0; i < SIM_JOBS && jobs[i].arrives_ms <= now_ms; i++) {
		struct job *job = &jobs[i];
		struct verdict verdict;

		if (job->started_ms)
			continue;
		verdict = plan_next(&plan, &job->row);
		CHECK(verdict.kind != VERDICT_GPU);
		if (verdict.kind == VERDICT_START) {
			job->started_ms = now_ms;
			job->gpus = verdict.gpus;
			/* no job that passed it has delayed it */
			CHECK(!job->bound_ms || now_ms <= job->bound_ms);
		} else if (verdict.is_first && plan.heads[0].start_ms) {
			CHECK(!job->bound_ms || plan.heads[0].start_ms <= job->bound_ms);
			job->bound_ms = plan.heads[0].start_ms;
		}
	}
	for (unsigned i = 0; i < SIM_JOBS; i++) {
		if (jobs[i].started_ms && end_of(&jobs[i]) > now_ms)
			next_ms = min_i64(next_ms, end_of(&jobs[i]));
		else if (jobs[i].arrives_ms > now_ms)
			next_ms = min_i64(next_ms, jobs[i].arrives_ms);
	}
	return next_ms == INT64_MAX ? 0 : next_ms;
}

static void no_ticket_starves_and_backfill_delays_no_head(void **state)
{
	enum { ROUNDS = 400 };

	(void)state;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		seed = round * 0x9e3779b97f4a7c15u;
		draw_jobs();
		for (int64_t now_ms = NOW_MS; now_ms; now_ms = step(round, now_ms))
			;
		for (unsigned i = 0; i < SIM_JOBS; i++)
			CHECK(jobs[i].started_ms != 0);
	}
}

static void a_stream_of_small_jobs_does_not_hold_up_a_large_one(void **state)
{
	unsigned passed = 0;

	(void)state;
	/* one of all GPUs, among many that want one each and do not say for how long */
	for (unsigned i = 0; i < SIM_JOBS; i++) {
		jobs[i] = (struct job){ .row = row_of(i + 1, i == 10 ? SIM_GPUS : 1),
			.arrives_ms = NOW_MS + (int64_t)i * S,
			.lasts_ms = (10 + i % 7) * S };
	}
	for (int64_t now_ms = NOW_MS; now_ms; now_ms = step(0, now_ms))
		;
	for (unsigned i = 11; i < SIM_JOBS; i++)
		passed += jobs[i].started_ms < jobs[10].started_ms;
	assert_true(jobs[10].started_ms != 0);
	assert_int_equal(passed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tickets_that_fit_start_in_their_order),
		cmocka_unit_test(
			idle_gpus_come_before_those_just_released_then_the_lowest_index),
		cmocka_unit_test(no_job_gets_a_gpu_that_it_may_not_have),
		cmocka_unit_test(gpus_that_do_not_exist_count_for_nothing),
		cmocka_unit_test(the_head_keeps_what_it_waits_for),
		cmocka_unit_test(a_head_reserves_what_is_free_first),
		cmocka_unit_test(each_blocked_ticket_reserves_gpus_of_its_own),
		cmocka_unit_test(a_stream_of_small_jobs_does_not_pass_the_second_in_line),
		cmocka_unit_test(
			too_few_gpus_that_are_not_reserved_are_not_reserved_either),
		cmocka_unit_test(a_ticket_kept_from_free_gpus_reserves_others),
		cmocka_unit_test(backfill_keeps_the_bound_of_each_head_concerned),
		cmocka_unit_test(nothing_is_reserved_after_rows_that_were_left_out),
		cmocka_unit_test(the_head_is_given_what_is_free_soonest),
		cmocka_unit_test(
			only_a_job_that_ends_before_the_head_could_start_goes_first),
		cmocka_unit_test(without_a_bound_for_the_head_no_job_goes_first),
		cmocka_unit_test(a_gpu_just_given_to_one_ahead_has_no_bound_either),
		cmocka_unit_test(what_may_come_free_any_moment_is_kept_for_the_head_too),
		cmocka_unit_test(a_ticket_that_waits_for_a_broken_gpu_reserves_nothing),
		cmocka_unit_test(
			a_ticket_that_waits_for_settling_or_lingering_gpus_reserves_them),
		cmocka_unit_test(the_strongest_reason_is_named),
		cmocka_unit_test(a_silent_state_ends_without_an_event),
		cmocka_unit_test(could_start_means_as_if_no_ticket_were_ahead),
		cmocka_unit_test(parts_are_packed_and_whole_gpus_stay_whole),
		cmocka_unit_test(a_ticket_that_waits_for_a_part_gets_the_best_room),
		cmocka_unit_test(memory_used_outside_is_named_as_the_obstacle),
		cmocka_unit_test(a_gpu_with_room_is_no_obstacle),
		cmocka_unit_test(a_ticket_that_waits_for_settling_memory_reserves_it),
		cmocka_unit_test(the_head_keeps_room_and_no_more),
		cmocka_unit_test(beside_a_head_without_a_bound_nothing_is_given),
		cmocka_unit_test(several_gpus_are_never_instances),
		cmocka_unit_test(too_many_leases_are_reported_with_their_gpu),
		cmocka_unit_test(a_dependent_ticket_takes_and_reserves_nothing),
		cmocka_unit_test(a_limit_holds_later_tickets_that_it_binds),
		cmocka_unit_test(
			a_ticket_that_waits_for_a_broken_gpu_holds_none_within_a_limit),
		cmocka_unit_test(the_head_keeps_its_part_of_a_limit),
		cmocka_unit_test(jobs_that_pass_leave_the_head_enough_together),
		cmocka_unit_test(all_heads_keep_their_part_of_a_limit),
		cmocka_unit_test(a_head_counts_jobs_that_passed_an_earlier_head),
		cmocka_unit_test(an_early_lease_makes_no_ticket_hold_others_back),
		cmocka_unit_test(beyond_a_limit_with_the_heads_nothing_is_reserved),
		cmocka_unit_test(no_machine_and_no_queue_break_the_rules),
		cmocka_unit_test(no_ticket_starves_and_backfill_delays_no_head),
		cmocka_unit_test(a_stream_of_small_jobs_does_not_hold_up_a_large_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
