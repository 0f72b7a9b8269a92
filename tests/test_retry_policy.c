/* What comes after an attempt. */
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "retry_policy.h"

/* As waitpid(2) has them. */
#define EXITED(status) ((status) << 8)
#define KILLED(signal) (signal)

static struct retry_policy care_with(unsigned retries, unsigned oom_retries)
{
	return (struct retry_policy){ .retries = retries,
		.oom_retries = oom_retries,
		.delay_ms = 5000,
		.delay_max_ms = 300000 };
}

static void an_end_that_forbids_retries_ends_the_job(void **state)
{
	static const struct {
		struct attempt_end end;
		bool is_done;
	} cases[] = {
		{ { .wait_status = EXITED(0) }, true },
		{ { .wait_status = EXITED(1) }, false },
		{ { .wait_status = EXITED(255) }, false },
		{ { .wait_status = KILLED(SIGSEGV) }, false },
		{ { .wait_status = KILLED(SIGTERM) }, false },
		{ { .wait_status = KILLED(SIGINT) }, true },
		{ { .wait_status = KILLED(SIGQUIT) }, true },
		{ { .wait_status = EXITED(128 + SIGINT) }, true },
		{ { .wait_status = EXITED(128 + SIGQUIT) }, true },
		{ { .cause = CAUSE_CANCEL, .wait_status = KILLED(SIGTERM) }, true },
		{ { .cause = CAUSE_CANCEL, .wait_status = EXITED(1), .is_oom = true },
			true },
		{ { .cause = CAUSE_LIMIT, .wait_status = KILLED(SIGTERM) }, true },
		{ { .was_told = true, .wait_status = EXITED(1) }, true },
		{ { .is_cancelled_late = true, .wait_status = EXITED(1) }, true },
		{ { .was_told = true, .cause = CAUSE_CANCEL }, true },
		{ { .was_told = true, .cause = CAUSE_LIMIT }, true },
		{ { .was_told = true, .cause = CAUSE_PREEMPT }, true },
		{ { .is_done = true, .wait_status = EXITED(3) }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct retry_policy care = care_with(1, 1);
		int64_t delay_ms = -1;

		if (cases[i].end.was_told) {
			care.on_limit = ON_LIMIT_REQUEUE;
			care.requeues = 1;
		}
		if ((retry_policy_apply(&care, &cases[i].end, 0, &delay_ms) ==
			    RETRY_NEXT_NOTHING) != cases[i].is_done)
			fail_msg("case %zu", i);
		assert_true((delay_ms == 0) == cases[i].is_done);
	}
}

static void a_failure_is_retried_as_often_as_allowed(void **state)
{
	const struct attempt_end end = { .wait_status = EXITED(1) };
	struct retry_policy care = care_with(2, 0);
	int64_t delay_ms;

	(void)state;
	assert_int_equal(retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_RETRY);
	assert_int_equal(retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_RETRY);
	assert_int_equal(
		retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_NOTHING);
	assert_int_equal(delay_ms, 0);
}

static void the_delay_doubles_up_to_the_maximum(void **state)
{
	static const int64_t least_ms[] = { 3750, 7500, 15000, 30000, 60000, 120000,
		180000, 180000 };
	static const int64_t most_ms[] = { 6250, 12500, 25000, 50000, 100000, 200000,
		300000, 300000 };
	const struct attempt_end end = { .wait_status = EXITED(1) };
	struct retry_policy low = care_with(100, 0), high = low, any = low;
	int64_t delay_ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(least_ms); i++) {
		assert_int_equal(
			retry_policy_apply(&low, &end, 0, &delay_ms), RETRY_NEXT_RETRY);
		assert_int_equal(delay_ms, least_ms[i]);
		assert_int_equal(retry_policy_apply(&high, &end, 1023, &delay_ms),
			RETRY_NEXT_RETRY);
		assert_int_equal(delay_ms, most_ms[i]);
		assert_int_equal(
			retry_policy_apply(&any, &end, UINT32_MAX / 3, &delay_ms),
			RETRY_NEXT_RETRY);
		assert_in_range(delay_ms, least_ms[i], most_ms[i]);
	}
	/* as long as a configuration allows, and as often */
	any = (struct retry_policy){
		.retries = 100, .delay_ms = 315360000000, .delay_max_ms = 315360000000
	};
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(retry_policy_apply(&any, &end, 1023, &delay_ms),
			RETRY_NEXT_RETRY);
		assert_in_range(delay_ms, 1, 315360000000);
	}
}

static void lack_of_memory_is_first_retried_with_more(void **state)
{
	const struct attempt_end oom = { .wait_status = EXITED(1), .is_oom = true };
	struct retry_policy care = care_with(1, 1);
	int64_t delay_ms;

	(void)state;
	care.vram_mib = 2000;
	assert_int_equal(retry_policy_apply(&care, &oom, 0, &delay_ms), RETRY_NEXT_OOM);
	assert_int_equal(care.vram_mib, 2500);
	assert_int_equal(delay_ms, 0);
	assert_int_equal(retry_policy_apply(&care, &oom, 0, &delay_ms), RETRY_NEXT_RETRY);
	assert_int_equal(care.vram_mib, 2500);
	assert_int_equal(delay_ms, 3750);
	assert_int_equal(
		retry_policy_apply(&care, &oom, 0, &delay_ms), RETRY_NEXT_NOTHING);
}

static void another_failure_uses_no_retry_for_memory(void **state)
{
	const struct attempt_end end = { .wait_status = EXITED(1) };
	struct retry_policy care = care_with(0, 3);
	int64_t delay_ms;

	(void)state;
	care.vram_mib = 2000;
	assert_int_equal(
		retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_NOTHING);
	assert_int_equal(care.oom_retries, 3);
	assert_int_equal(care.vram_mib, 2000);
}

static void the_next_declaration_is_a_quarter_more(void **state)
{
	static const struct {
		bool is_sharing;
		uint64_t declared, peak, most, next;
		enum retry_next what;
	} cases[] = {
		{ true, 2000, 0, 0, 2500, RETRY_NEXT_OOM },
		{ true, 2000, 1000, 0, 2500, RETRY_NEXT_OOM },
		{ true, 2000, 2400, 0, 3000, RETRY_NEXT_OOM },
		{ true, 2001, 0, 0, 2502, RETRY_NEXT_OOM }, /* 2501.25, rounded up */
		{ true, 1, 0, 0, 2, RETRY_NEXT_OOM },
		{ true, 2000, 0, 2500, 2500, RETRY_NEXT_OOM },
		{ true, 2000, 0, 2400, 2400, RETRY_NEXT_OOM },
		{ true, 2000, 9000, 2400, 2400, RETRY_NEXT_OOM },
		{ true, 2000, 0, 2000, 2000, RETRY_NEXT_NOTHING },
		{ true, 2000, 0, 1000, 2000, RETRY_NEXT_NOTHING },
		{ false, 2000, 0, 0, 2500, RETRY_NEXT_OOM },
		/* it has all of its GPUs: nothing to declare */
		{ false, 0, 9000, 0, 0, RETRY_NEXT_OOM },
		/* it has a share, and now says how much */
		{ true, 0, 1000, 0, 1250, RETRY_NEXT_OOM },
		{ true, 0, 1000, 1100, 1100, RETRY_NEXT_OOM },
		{ true, 0, 0, 0, 0, RETRY_NEXT_OOM },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct attempt_end end = { .wait_status = KILLED(SIGABRT),
			.is_oom = true,
			.peak_mib = cases[i].peak };
		struct retry_policy care = care_with(0, 1);
		int64_t delay_ms;

		care.is_sharing = cases[i].is_sharing;
		care.vram_mib = cases[i].declared;
		care.vram_max_mib = cases[i].most;
		if (retry_policy_apply(&care, &end, 0, &delay_ms) != cases[i].what ||
			care.vram_mib != cases[i].next)
			fail_msg("case %zu: %llu", i, (unsigned long long)care.vram_mib);
	}
}

static void a_job_at_its_limit_is_requeued_as_often_as_allowed(void **state)
{
	const struct attempt_end end = {
		.cause = CAUSE_LIMIT, .wait_status = KILLED(SIGTERM), .is_oom = true
	};
	struct retry_policy care = care_with(3, 3);
	int64_t delay_ms;

	(void)state;
	care.on_limit = ON_LIMIT_REQUEUE;
	care.requeues = 2;
	care.vram_mib = 2000;
	assert_int_equal(
		retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_REQUEUE);
	assert_int_equal(
		retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_REQUEUE);
	assert_int_equal(
		retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_NOTHING);
	care.requeues = UINT_MAX; /* any number */
	assert_int_equal(
		retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_REQUEUE);
	assert_true(care.requeues == UINT_MAX);
	care.on_limit = ON_LIMIT_KILL;
	assert_int_equal(
		retry_policy_apply(&care, &end, 0, &delay_ms), RETRY_NEXT_NOTHING);
	/* none of these was a failure */
	assert_int_equal(care.retries, 3);
	assert_int_equal(care.vram_mib, 2000);
}

static void a_preempted_job_is_always_requeued(void **state)
{
	const struct attempt_end end = { .cause = CAUSE_PREEMPT,
		.wait_status = EXITED(0) };
	struct retry_policy care = care_with(0, 0);
	int64_t delay_ms;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(retry_policy_apply(&care, &end, 0, &delay_ms),
			RETRY_NEXT_REQUEUE);
	assert_int_equal(delay_ms, 0);
}

static void a_job_whose_user_wants_it_back_is_always_requeued(void **state)
{
	static const int statuses[] = { EXITED(0), EXITED(3), KILLED(SIGTERM),
		KILLED(SIGINT) };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		for (unsigned told = 0; told < 4; told++) {
			const struct attempt_end end = { .cause = CAUSE_REQUEUE,
				.wait_status = statuses[i],
				.was_told = told & 1,
				.is_done = told & 2 };
			struct retry_policy care = care_with(2, 2);
			int64_t delay_ms;

			assert_int_equal(retry_policy_apply(&care, &end, 0, &delay_ms),
				RETRY_NEXT_REQUEUE);
			assert_int_equal(delay_ms, 0);
			assert_int_equal(care.retries, 2);
		}
}

static void the_exit_status_says_how_the_attempt_ended(void **state)
{
	static const struct {
		struct attempt_end end;
		int status;
	} cases[] = {
		{ { .wait_status = EXITED(0) }, 0 },
		{ { .wait_status = EXITED(7) }, 7 },
		{ { .wait_status = KILLED(SIGKILL) }, 137 },
		{ { .wait_status = KILLED(SIGSEGV) | 0x80 }, 139 }, /* with a core */
		{ { .cause = CAUSE_LIMIT, .wait_status = EXITED(0) }, 124 },
		{ { .cause = CAUSE_UNUSED, .wait_status = EXITED(0) }, 124 },
		{ { .cause = CAUSE_CANCEL, .wait_status = KILLED(SIGKILL) }, 137 },
		{ { .cause = CAUSE_CANCEL, .wait_status = EXITED(0) }, 143 },
		{ { .cause = CAUSE_PREEMPT, .wait_status = KILLED(SIGTERM) }, 143 },
		{ { .cause = CAUSE_PREEMPT, .wait_status = EXITED(0) }, 143 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(attempt_exit_status(&cases[i].end), cases[i].status);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_that_forbids_retries_ends_the_job),
		cmocka_unit_test(a_failure_is_retried_as_often_as_allowed),
		cmocka_unit_test(the_delay_doubles_up_to_the_maximum),
		cmocka_unit_test(lack_of_memory_is_first_retried_with_more),
		cmocka_unit_test(another_failure_uses_no_retry_for_memory),
		cmocka_unit_test(the_next_declaration_is_a_quarter_more),
		cmocka_unit_test(a_job_at_its_limit_is_requeued_as_often_as_allowed),
		cmocka_unit_test(a_preempted_job_is_always_requeued),
		cmocka_unit_test(a_job_whose_user_wants_it_back_is_always_requeued),
		cmocka_unit_test(the_exit_status_says_how_the_attempt_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
