#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "estimate.h"

enum { NOW_MS = 1000000, S = 1000, CARD_MIB = 81920, MARGIN_MIB = 512 };

static struct plan_gpu gpus[GPUSET_MAX];
static struct plan_use uses[GPUSET_MAX][2];
static struct plan_facts facts;
static struct plan_row rows[100];
static size_t count;
static int64_t starts_ms[100];

/* A machine with so many free GPUs and no waiting job. */
static void begin(unsigned gpu_count)
{
	memset(gpus, 0, sizeof(gpus));
	for (unsigned slot = 0; slot < gpu_count; slot++)
		gpus[slot] = (struct plan_gpu){ .exists = true,
			.index = slot,
			.total_mib = CARD_MIB,
			.uses = uses[slot] };
	facts = (struct plan_facts){
		.gpus = gpus, .now_ms = NOW_MS, .margin_mib = MARGIN_MIB
	};
	count = 0;
}

/* A lease on GPU @slot that ends @seconds from now; 0: not known. */
static void lease(unsigned slot, unsigned percent, uint64_t mib, int64_t seconds)
{
	uses[slot][gpus[slot].use_count++] = (struct plan_use){ .percent = percent,
		.mib = mib,
		.end_ms = seconds ? NOW_MS + seconds * S : 0 };
	gpus[slot].state = GPU_LEASED;
}

/* Adds a waiting job that needs whole GPUs. */
static struct plan_row *wait_for(uint32_t wanted, int64_t limit_s)
{
	rows[count] = (struct plan_row){ .ticket = count + 1,
		.uid = 1000,
		.gpus = wanted,
		.need = NEED_WHOLE,
		.limit_ms = limit_s * S,
		.allow = GPUSET_ALL };
	return &rows[count++];
}

/* Checks all estimates: seconds from now, -1: not known. */
static void check(const int64_t *wanted_s)
{
	assert_int_equal(estimate_starts(&facts, rows, count, starts_ms), 0);
	for (size_t i = 0; i < count; i++) {
		int64_t got_s = starts_ms[i] ? (starts_ms[i] - NOW_MS) / S : -1;

		if (got_s != wanted_s[i])
			fail_msg("row %zu starts in %d s, not %d s", i, (int)got_s,
				(int)wanted_s[i]);
	}
}

#define CHECK(...) check((const int64_t[]){ __VA_ARGS__ })

static void rows_that_fit_start_now_and_the_others_as_leases_end(void **state)
{
	(void)state;
	begin(2);
	lease(0, 100, CARD_MIB, 60);
	lease(1, 100, CARD_MIB, 100);
	wait_for(1, 50);
	wait_for(1, 50);
	wait_for(1, 50);
	/* the first at 60, the second at 100, the third when the first is over */
	CHECK(60, 100, 110);
	begin(2);
	wait_for(1, 0);
	wait_for(1, 0);
	wait_for(1, 0);
	CHECK(0, 0, -1);
}

static void the_grace_is_waited_for_too(void **state)
{
	(void)state;
	begin(1);
	wait_for(1, 60)->grace_ms = 30 * S;
	wait_for(1, 0);
	CHECK(0, 90);
}

static void the_end_of_a_job_without_a_limit_is_not_known(void **state)
{
	(void)state;
	begin(2);
	lease(0, 100, CARD_MIB, 0);
	lease(1, 100, CARD_MIB, 60);
	wait_for(2, 60);
	wait_for(1, 60);
	/* the second waits for the first, which has no bound */
	CHECK(-1, -1);
}

static void a_short_job_is_let_past_the_head(void **state)
{
	(void)state;
	begin(2);
	lease(0, 100, CARD_MIB, 100);
	wait_for(2, 100);
	wait_for(1, 50);
	wait_for(1, 99);
	CHECK(100, 0, 200);
}

static void a_held_row_gets_no_estimate(void **state)
{
	(void)state;
	begin(1);
	wait_for(1, 60)->hold = DEPENDENCY_AFTER;
	wait_for(1, 60);
	wait_for(1, 60);
	CHECK(-1, 0, 60);
}

static void held_until(struct plan_row *row, int64_t seconds)
{
	row->hold = DEPENDENCY_UNTIL;
	row->held_until_ms = NOW_MS + seconds * S;
}

static void a_row_that_is_retried_later_starts_then(void **state)
{
	(void)state;
	begin(1);
	held_until(wait_for(1, 60), 40);
	CHECK(40);
	/* it keeps no other job from starting, and then waits for its turn again */
	begin(1);
	held_until(wait_for(1, 60), 40);
	wait_for(1, 50);
	wait_for(1, 10);
	CHECK(50, 0, 110);
	begin(1);
	lease(0, 100, CARD_MIB, 0);
	held_until(wait_for(1, 60), 40);
	CHECK(-1);
}

static void an_obstacle_that_is_no_lease_never_ends(void **state)
{
	static const enum gpu_state states[] = { GPU_PAUSED, GPU_EXTERNAL, GPU_UNKNOWN,
		GPU_LOCKED, GPU_LINGERING, GPU_SETTLING };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		begin(2);
		lease(0, 100, CARD_MIB, 60);
		gpus[1].state = states[i];
		wait_for(2, 60);
		CHECK(-1);
	}
	/* nor is a GPU free after its lease where strangers use it as well */
	begin(1);
	lease(0, 50, CARD_MIB / 2, 60);
	gpus[0].foreign_mib = 1024;
	wait_for(1, 60);
	CHECK(-1);
}

static void parts_of_a_gpu_come_free_one_by_one(void **state)
{
	(void)state;
	begin(1);
	lease(0, 50, CARD_MIB / 2, 60);
	lease(0, 50, CARD_MIB / 2, 100);
	wait_for(1, 70)->need = (struct need){ .percent = 50 };
	wait_for(1, 0)->need = (struct need){ .percent = 50 };
	wait_for(1, 60);
	CHECK(60, 100, -1);
	/* 40 GiB and the margin are there when both have ended */
	begin(1);
	lease(0, 50, CARD_MIB / 2, 60);
	lease(0, 50, CARD_MIB / 2, 100);
	wait_for(1, 60)->need = (struct need){ .mib = CARD_MIB / 2 };
	CHECK(100);
}

static void an_overdue_lease_is_taken_to_end_at_once(void **state)
{
	(void)state;
	begin(1);
	lease(0, 100, CARD_MIB, -20);
	wait_for(1, 60);
	wait_for(1, 60);
	CHECK(0, 60);
}

static void limits_bind_in_the_future_too(void **state)
{
	struct plan_user users[] = { { .uid = 1000, .percent = 100, .leases = 1 } };

	(void)state;
	begin(3);
	facts.limits.user_percent = 200;
	facts.users = users;
	facts.user_count = 1;
	lease(0, 100, CARD_MIB, 10);
	wait_for(1, 60);
	wait_for(1, 60);
	wait_for(1, 60)->uid = 2000;
	/* the user of the lease that ends after 10 s is not known */
	CHECK(0, 60, 0);
	assert_int_equal(users[0].percent, 100);
	/* and one that never ends */
	wait_for(2, 60);
	CHECK(0, 60, 0, -1);
	/* leases are counted as well, and no longer when they have ended */
	begin(3);
	facts.limits.user_leases = 1;
	wait_for(1, 60);
	wait_for(1, 60);
	CHECK(0, 60);
}

static void only_the_first_are_looked_at(void **state)
{
	(void)state;
	begin(1);
	for (size_t i = 0; i < ESTIMATE_ROWS + 2; i++)
		wait_for(1, 10);
	assert_int_equal(estimate_starts(&facts, rows, count, starts_ms), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(starts_ms[i],
			i < ESTIMATE_ROWS ? NOW_MS + (int64_t)i * 10 * S : 0);
}

static void no_queue_and_no_machine_are_no_problem(void **state)
{
	(void)state;
	begin(0);
	assert_int_equal(estimate_starts(&facts, rows, 0, starts_ms), 0);
	wait_for(1, 10);
	CHECK(-1);
}

static void the_facts_are_left_alone(void **state)
{
	(void)state;
	begin(1);
	lease(0, 100, CARD_MIB, 60);
	wait_for(1, 10);
	CHECK(60);
	assert_int_equal(gpus[0].state, GPU_LEASED);
	assert_int_equal(gpus[0].use_count, 1);
	assert_int_equal(uses[0][0].end_ms, NOW_MS + 60 * S);
	assert_int_equal(facts.now_ms, NOW_MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_fit_start_now_and_the_others_as_leases_end),
		cmocka_unit_test(the_grace_is_waited_for_too),
		cmocka_unit_test(the_end_of_a_job_without_a_limit_is_not_known),
		cmocka_unit_test(a_short_job_is_let_past_the_head),
		cmocka_unit_test(a_held_row_gets_no_estimate),
		cmocka_unit_test(a_row_that_is_retried_later_starts_then),
		cmocka_unit_test(an_obstacle_that_is_no_lease_never_ends),
		cmocka_unit_test(parts_of_a_gpu_come_free_one_by_one),
		cmocka_unit_test(an_overdue_lease_is_taken_to_end_at_once),
		cmocka_unit_test(limits_bind_in_the_future_too),
		cmocka_unit_test(only_the_first_are_looked_at),
		cmocka_unit_test(no_queue_and_no_machine_are_no_problem),
		cmocka_unit_test(the_facts_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
