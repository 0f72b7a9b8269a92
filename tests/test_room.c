#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "quota.h"
#include "room.h"

enum { CARD_MIB = 81920, MARGIN_MIB = 512, NOW_MS = 1000 };

static struct plan_gpu gpu;
static struct plan_use uses[ROOM_LEASES];

static void fresh(enum gpu_state state)
{
	gpu = (struct plan_gpu){
		.exists = true, .state = state, .total_mib = CARD_MIB, .uses = uses
	};
}

static void add(unsigned percent, uint64_t mib, int64_t end_ms)
{
	struct need need = { .percent = percent, .mib = mib };

	uses[gpu.use_count++] = (struct plan_use){ .percent = percent,
		.mib = need_mib(&need, CARD_MIB),
		.is_declared = mib != 0,
		.end_ms = end_ms };
}

static bool fits(unsigned percent, uint64_t mib)
{
	struct room room = room_at(&gpu, INT64_MIN);
	struct need need = need_declared(percent, mib);

	return gpu_admits(&gpu, &need, true) && room_fits(&room, &gpu, &need, MARGIN_MIB);
}

static void check_room(int64_t at_ms, unsigned percent, uint64_t mib, unsigned leases)
{
	struct room room = room_at(&gpu, at_ms);

	assert_int_equal(room.percent, percent);
	assert_int_equal(room.mib, mib);
	assert_int_equal(room.leases, leases);
}

/* --- room --------------------------------------------------------------------------- */

static void a_need_is_what_was_declared_or_a_whole_gpu(void **state)
{
	struct need all = need_declared(0, 0), half = need_declared(50, 0),
		    memory = need_declared(0, 18432), both = need_declared(50, 18432);

	(void)state;
	assert_true(need_is_whole(&all));
	assert_false(need_is_whole(&half) || need_is_whole(&memory));
	assert_int_equal(need_mib(&all, CARD_MIB), CARD_MIB);
	assert_int_equal(need_mib(&half, CARD_MIB), CARD_MIB / 2);
	assert_int_equal(need_mib(&half, 81559), 40779);
	assert_int_equal(need_mib(&memory, CARD_MIB), 18432);
	assert_int_equal(need_mib(&both, CARD_MIB), 18432);
	/* shares never count more than the card has, however they are cut */
	assert_true(3 * need_mib(&(struct need){ .percent = 33 }, 81559) <= 81559);
}

static void leases_leave_the_rest_until_they_end(void **state)
{
	(void)state;
	fresh(GPU_LEASED);
	check_room(INT64_MIN, 100, CARD_MIB, 31);
	add(30, 0, 5000);
	add(0, 20000, 0);
	check_room(INT64_MIN, 70, CARD_MIB - 24576 - 20000, 29);
	check_room(4999, 70, CARD_MIB - 24576 - 20000, 29);
	check_room(5000, 100, CARD_MIB - 20000, 30);
	check_room(INT64_MAX, 100, CARD_MIB, 31);
	gpu.foreign_mib = 1920;
	check_room(INT64_MAX, 100, 80000, 31);
	gpu.foreign_mib = CARD_MIB + 1;
	check_room(INT64_MAX, 100, 0, 31);
}

static void a_whole_lease_leaves_nothing(void **state)
{
	(void)state;
	fresh(GPU_LEASED);
	add(WHOLE_PERCENT, 0, 0);
	check_room(INT64_MIN, 0, 0, 0);
	assert_false(fits(1, 0) || fits(0, 1) || fits(0, 0));
}

static void shares_add_up_to_one(void **state)
{
	(void)state;
	fresh(GPU_LEASED);
	add(50, 0, 0);
	assert_true(fits(50, 0));
	assert_false(fits(51, 0));
	assert_false(fits(0, 0)); /* no job can have the whole GPU beside it */
	add(50, 0, 0);
	assert_false(fits(1, 0));
	assert_false(fits(0, 1)); /* they are counted with the memory, too */
	fresh(GPU_FREE);
	assert_true(fits(99, 0) && fits(0, 0));
}

static void declared_memory_leaves_a_margin(void **state)
{
	(void)state;
	fresh(GPU_FREE);
	assert_true(fits(0, CARD_MIB - MARGIN_MIB));
	assert_false(fits(0, CARD_MIB - MARGIN_MIB + 1));
	fresh(GPU_LEASED);
	add(0, 40000, 0);
	assert_true(fits(0, CARD_MIB - 40000 - MARGIN_MIB));
	assert_false(fits(0, CARD_MIB - 40000 - MARGIN_MIB + 1));
	/* a share wants its part of the memory beside it, and leaves the margin, too */
	assert_true(fits(50, 0));
	assert_false(fits(51, 0));
	/* both have to fit */
	assert_true(fits(100 - 1, 1000));
	add(30, 1000, 0);
	assert_false(fits(71, 1000));
	assert_true(fits(70, 1000));
}

static void the_32nd_waits(void **state)
{
	(void)state;
	fresh(GPU_LEASED);
	for (int i = 0; i < ROOM_LEASES - 1; i++)
		add(1, 0, 0);
	assert_true(fits(1, 0));
	add(1, 0, 0);
	assert_false(fits(1, 0) || fits(0, 1));
	check_room(INT64_MIN, 69, CARD_MIB - 31 * 819, 0);
}

static void a_card_of_unknown_size_has_shares_and_no_memory(void **state)
{
	(void)state;
	fresh(GPU_FREE);
	gpu.total_mib = 0;
	assert_true(fits(50, 0) && fits(0, 0));
	assert_false(fits(0, 1));
}

/* --- states ------------------------------------------------------------------------- */

static void the_state_decides_which_jobs_may_start_and_when(void **state)
{
	static const struct {
		enum gpu_state state;
		const char *now, *ever; /* w whole, s a share, m memory */
	} table[] = { { GPU_FREE, "wsm", "wsm" }, { GPU_LEASED, "sm", "wsm" },
		{ GPU_LINGERING, "sm", "wsm" }, { GPU_SETTLING, "", "wsm" },
		{ GPU_LOCKED, "", "" }, { GPU_EXTERNAL, "m", "m" },
		{ GPU_UNKNOWN, "", "" }, { GPU_PAUSED, "", "" } };
	static const struct {
		char letter;
		struct need need;
	} kinds[] = { { 'w', { .percent = 100 } }, { 's', { .percent = 1 } },
		{ 'm', { .mib = 1 } } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			fresh(table[i].state);
			assert_int_equal(gpu_admits(&gpu, &kinds[k].need, true),
				strchr(table[i].now, kinds[k].letter) != NULL);
			assert_int_equal(gpu_admits(&gpu, &kinds[k].need, false),
				strchr(table[i].ever, kinds[k].letter) != NULL);
			gpu.exists = false;
			assert_false(gpu_admits(&gpu, &kinds[k].need, true));
		}
}

static void beside_strangers_there_is_only_declared_memory(void **state)
{
	(void)state;
	fresh(GPU_LEASED);
	add(10, 0, 0);
	gpu.foreign_mib = 30000;
	assert_false(fits(10, 0));
	assert_false(fits(10, 1000));
	assert_true(fits(0, 40000));
	assert_false(fits(0, CARD_MIB - 30000 - 8192));
	fresh(GPU_EXTERNAL);
	gpu.foreign_mib = 30000;
	assert_true(fits(0, 40000));
	gpu.is_busy = true;
	assert_false(fits(0, 40000));
}

static void settling_memory_takes_room_until_all_leases_have_ended(void **state)
{
	static const struct need share = { .percent = 10 }, memory = { .mib = 60000 };

	(void)state;
	fresh(GPU_LEASED);
	add(10, 1000, 0);
	gpu.settling_mib = 30000;
	assert_false(fits(10, 0));
	assert_true(fits(0, 40000));
	assert_false(fits(0, 60000));
	assert_true(gpu_admits(&gpu, &share, false) && gpu_admits(&gpu, &memory, false));
	check_room(INT64_MIN, 90, CARD_MIB - 31000, 30);
	check_room(INT64_MAX, 100, CARD_MIB, 31);
	assert_true(gpu_is_clearing(&gpu));
	gpu.settling_mib = 0;
	assert_false(gpu_is_clearing(&gpu));
	uses[0].is_dead = true;
	assert_true(gpu_is_clearing(&gpu));
	check_room(INT64_MIN, 90, CARD_MIB - 1000, 30);
	assert_int_equal(room_cleared_at(&gpu, INT64_MIN).percent, 100);
	assert_int_equal(room_cleared_at(&gpu, INT64_MIN).leases, 31);
}

static void one_process_at_a_time_is_one_lease(void **state)
{
	(void)state;
	fresh(GPU_FREE);
	gpu.is_solo = true;
	assert_true(fits(50, 0) && fits(0, 1000) && fits(0, 0));
	fresh(GPU_LEASED);
	gpu.is_solo = true;
	add(50, 0, 0);
	assert_false(fits(10, 0) || fits(0, 1000));
	check_room(INT64_MIN, 0, 0, 0);
}

/* --- limits ------------------------------------------------------------------------- */

/* User 7 has 150 % in 2 leases, user 8 100 % in 1. */
struct limit_case {
	struct plan_limits limits;
	uint32_t uid;
	unsigned gpus, percent;
	int kind; /* -1: allowed */
	unsigned used;
	unsigned own_percent, own_leases; /* as the ticket says */
};

static void check_limit(const struct limit_case *with, size_t number)
{
	static const struct plan_user users[] = {
		{ .uid = 7, .percent = 150, .leases = 2 },
		{ .uid = 8, .percent = 100, .leases = 1 }
	};
	struct plan_row row = { .uid = with->uid,
		.gpus = with->gpus,
		.need = { .percent = with->percent, .mib = 1 },
		.most_percent = with->own_percent,
		.most_leases = with->own_leases,
		.limits_line = 12 };
	struct quota_excess excess = { .most = 0 };
	struct quota quota;
	bool is_forbidden, is_own;

	quota_begin(&quota, &with->limits, users, ARRAY_SIZE(users));
	is_forbidden = quota_forbids(&quota, &row, NULL, &excess);
	if (is_forbidden != (with->kind >= 0))
		fail_msg("row %zu", number);
	if (!is_forbidden)
		return;
	assert_int_equal(excess.kind, with->kind);
	assert_int_equal(excess.used, with->used);
	/* the line is named if its limit is what forbids the job */
	is_own = (with->kind == LIMIT_USER_GPUS && with->own_percent) ||
		 (with->kind == LIMIT_USER_LEASES && with->own_leases);
	assert_int_equal(excess.line, is_own ? 12 : 0);
}

static void limits_count_gpus_and_leases(void **state)
{
	static const struct limit_case table[] = {
		{ { 0 }, 7, 100, 100, -1, 0, 0, 0 },
		{ { .user_percent = 200 }, 7, 1, 50, -1, 0, 0, 0 },
		{ { .user_percent = 200 }, 7, 1, 51, LIMIT_USER_GPUS, 150, 0, 0 },
		{ { .user_percent = 200 }, 8, 1, 100, -1, 0, 0, 0 },
		{ { .user_percent = 200 }, 8, 2, 100, LIMIT_USER_GPUS, 100, 0, 0 },
		{ { .user_percent = 200 }, 8, 1, 0, -1, 0, 0,
			0 }, /* memory: a whole one */
		{ { .user_percent = 199 }, 8, 1, 0, LIMIT_USER_GPUS, 100, 0, 0 },
		{ { .user_percent = 200 }, 9, 2, 100, -1, 0, 0, 0 },
		{ { .user_percent = 200 }, 9, 3, 100, LIMIT_USER_GPUS, 0, 0, 0 },
		{ { .user_percent = 100 }, 0, 8, 100, -1, 0, 0, 0 }, /* root */
		{ { .user_percent = 100 }, 7, 0, 100, -1, 0, 0, 0 }, /* no GPU */
		{ { .user_leases = 2 }, 7, 1, 1, LIMIT_USER_LEASES, 2, 0, 0 },
		{ { .user_leases = 2 }, 8, 1, 1, -1, 0, 0, 0 },
		{ { .all_percent = 350 }, 9, 1, 100, -1, 0, 0, 0 },
		{ { .all_percent = 349 }, 9, 1, 100, LIMIT_ALL_GPUS, 250, 0, 0 },
		{ { .all_percent = 300 }, 0, 1, 100, LIMIT_ALL_GPUS, 250, 0, 0 },
		{ { .all_leases = 3 }, 0, 1, 1, LIMIT_ALL_LEASES, 3, 0, 0 },
		{ { .all_leases = 4 }, 0, 1, 1, -1, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		check_limit(&table[i], i);
}

static void limits_of_the_ticket_count_in_place_of_those_for_each_user(void **state)
{
	static const struct limit_case table[] = {
		{ { 0 }, 7, 1, 51, LIMIT_USER_GPUS, 150, 200, 0 },
		{ { .user_percent = 900 }, 7, 1, 51, LIMIT_USER_GPUS, 150, 200, 0 },
		{ { .user_percent = 100 }, 7, 1, 50, -1, 0, 200, 0 },
		{ { .user_percent = 100 }, 7, 9, 100, -1, 0, PLAN_NO_LIMIT, 0 },
		{ { .user_leases = 9 }, 7, 1, 1, LIMIT_USER_LEASES, 2, 0, 2 },
		{ { .user_leases = 1 }, 7, 1, 1, -1, 0, 0, 3 },
		{ { .user_leases = 1 }, 7, 1, 1, -1, 0, 0, PLAN_NO_LIMIT },
		/* one that the ticket does not name stays as it is, and so do those for all */
		{ { .user_leases = 2 }, 7, 1, 1, LIMIT_USER_LEASES, 2, 900, 0 },
		{ { .user_percent = 200 }, 7, 1, 51, LIMIT_USER_GPUS, 150, 0, 9 },
		{ { .all_leases = 3 }, 9, 1, 1, LIMIT_ALL_LEASES, 3, 900, 9 },
		{ { 0 }, 0, 9, 100, -1, 0, 100, 1 }, /* root */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		check_limit(&table[i], i);
}

static void a_share_counts_as_much_as_its_memory(void **state)
{
	static const struct {
		unsigned percent;
		uint64_t mib, gpu_mib;
		unsigned counts;
	} cases[] = {
		{ 100, 0, 81920, 100 },
		{ 0, 1024, 81920, 100 },
		{ 50, 0, 81920, 50 },
		{ 50, 40960, 81920, 50 },
		/* a GPU has a little less than its name says */
		{ 50, 40960, 81559, 50 },
		{ 1, 79 * 1024, 81920, 98 },
		{ 1, 200000, 81920, 100 },
		{ 1, 79 * 1024, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct need need = { cases[i].percent, cases[i].mib };

		assert_int_equal(
			quota_percent(1, &need, cases[i].gpu_mib), cases[i].counts);
		assert_int_equal(
			quota_percent(3, &need, cases[i].gpu_mib), 3 * cases[i].counts);
	}
}

static void starts_count_and_a_waiting_ticket_holds_the_others(void **state)
{
	struct plan_limits limits = { .user_percent = 200, .all_leases = 9 };
	struct plan_row row = { .uid = 7, .gpus = 2, .need = NEED_WHOLE };
	struct quota_excess excess;
	struct quota quota;

	(void)state;
	quota_begin(&quota, &limits, NULL, 0);
	assert_false(quota_forbids(&quota, &row, NULL, &excess));
	quota_count(&quota, 7, 2, &row.need);
	row.gpus = 1;
	assert_true(quota_forbids(&quota, &row, NULL, &excess));
	assert_int_equal(excess.used, 200);
	assert_int_equal(quota_held(&quota, 7, 1), 0);
	quota_hold(&quota, 7, excess.kind, 31);
	quota_hold(&quota, 7, excess.kind, 32);
	assert_int_equal(quota_held(&quota, 7, 1), 31);
	assert_int_equal(quota_held(&quota, 7, 0), 0); /* no GPU, no limit */
	assert_int_equal(quota_held(&quota, 8, 1), 0);
	quota_hold(&quota, 8, LIMIT_ALL_LEASES, 33);
	assert_int_equal(quota_held(&quota, 9, 1), 33);
	assert_int_equal(quota_held(&quota, 0, 1), 33);
}

/* 300 users with leases, and more who start: each is counted, and found again in a copy. */
static void each_of_many_users_is_counted(void **state)
{
	enum { USERS = 300, FIRST = 100000, STEP = 256, LATER = PLAN_USERS_MAX - USERS };
	static struct plan_user users[USERS];
	static struct quota quota, copy;
	struct plan_limits limits = { .user_leases = 2 };
	struct plan_row row = { .gpus = 1, .need = NEED_WHOLE };
	struct quota_excess excess;

	(void)state;
	for (unsigned i = 0; i < USERS; i++)
		users[i] = (struct plan_user){ .uid = FIRST + i * STEP, .leases = 1 };
	quota_begin(&quota, &limits, users, USERS);
	for (unsigned i = 0; i < USERS; i += 2)
		quota_count(&quota, FIRST + i * STEP, 1, &row.need);
	for (unsigned i = 0; i < LATER; i++)
		for (int twice = 0; twice < 2; twice++)
			quota_count(&quota, 1 + i, 1, &row.need);
	quota_copy(&copy, &quota);
	for (unsigned i = 0; i < USERS; i++) {
		row.uid = FIRST + i * STEP;
		assert_true(quota_forbids(&copy, &row, NULL, &excess) == (i % 2 == 0));
	}
	for (unsigned i = 0; i < LATER; i++) {
		row.uid = 1 + i;
		assert_true(quota_forbids(&copy, &row, NULL, &excess));
	}
	/* no room is left: all that is lost is the count of this user */
	quota_count(&quota, 1 + LATER, 1, &row.need);
	quota_hold(&quota, 1 + LATER, LIMIT_USER_GPUS, 31);
	assert_int_equal(quota_held(&quota, 1 + LATER, 1), 0);
	assert_int_equal(quota.all.leases, USERS + USERS / 2 + 2 * LATER + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_need_is_what_was_declared_or_a_whole_gpu),
		cmocka_unit_test(leases_leave_the_rest_until_they_end),
		cmocka_unit_test(a_whole_lease_leaves_nothing),
		cmocka_unit_test(shares_add_up_to_one),
		cmocka_unit_test(declared_memory_leaves_a_margin),
		cmocka_unit_test(the_32nd_waits),
		cmocka_unit_test(a_card_of_unknown_size_has_shares_and_no_memory),
		cmocka_unit_test(the_state_decides_which_jobs_may_start_and_when),
		cmocka_unit_test(beside_strangers_there_is_only_declared_memory),
		cmocka_unit_test(settling_memory_takes_room_until_all_leases_have_ended),
		cmocka_unit_test(one_process_at_a_time_is_one_lease),
		cmocka_unit_test(limits_count_gpus_and_leases),
		cmocka_unit_test(
			limits_of_the_ticket_count_in_place_of_those_for_each_user),
		cmocka_unit_test(a_share_counts_as_much_as_its_memory),
		cmocka_unit_test(starts_count_and_a_waiting_ticket_holds_the_others),
		cmocka_unit_test(each_of_many_users_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
