/* What comes after an attempt. */
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../gpulease/care.h"

/* As waitpid(2) has them. */
#define EXITED(status) ((status) << 8)
#define KILLED(signal) (signal)

static struct care care_with(unsigned retries, unsigned oom_retries)
{
	return (struct care){ .retries = retries,
		.oom_retries = oom_retries,
		.delay_ms = 5000,
		.delay_max_ms = 300000 };
}

static void who_is_not_to_be_tried_again_is_done(void **state)
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
		{ { .was_told = true, .cause = CAUSE_CANCEL }, true },
		{ { .was_told = true, .cause = CAUSE_LIMIT }, true },
		{ { .was_told = true, .cause = CAUSE_PREEMPT }, true },
		{ { .is_done = true, .wait_status = EXITED(3) }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct care care = care_with(1, 1);
		int64_t delay_ms = -1;

		if (cases[i].end.was_told) {
			care.on_limit = ON_LIMIT_REQUEUE;
			care.requeues = 1;
		}
		if ((care_after(&care, &cases[i].end, 0, &delay_ms) == CARE_DONE) !=
			cases[i].is_done)
			fail_msg("case %zu", i);
		assert_true((delay_ms == 0) == cases[i].is_done);
	}
}

static void a_failure_is_tried_again_as_often_as_allowed(void **state)
{
	const struct attempt_end end = { .wait_status = EXITED(1) };
	struct care care = care_with(2, 0);
	int64_t delay_ms;

	(void)state;
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_RETRY);
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_RETRY);
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_DONE);
	assert_int_equal(delay_ms, 0);
}

static void the_delay_doubles_up_to_the_most(void **state)
{
	static const int64_t least_ms[] = { 3750, 7500, 15000, 30000, 60000, 120000,
		180000, 180000 };
	static const int64_t most_ms[] = { 6250, 12500, 25000, 50000, 100000, 200000,
		300000, 300000 };
	const struct attempt_end end = { .wait_status = EXITED(1) };
	struct care low = care_with(100, 0), high = low, any = low;
	int64_t delay_ms;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(least_ms); i++) {
		assert_int_equal(care_after(&low, &end, 0, &delay_ms), CARE_RETRY);
		assert_int_equal(delay_ms, least_ms[i]);
		assert_int_equal(care_after(&high, &end, 1023, &delay_ms), CARE_RETRY);
		assert_int_equal(delay_ms, most_ms[i]);
		assert_int_equal(
			care_after(&any, &end, UINT32_MAX / 3, &delay_ms), CARE_RETRY);
		assert_in_range(delay_ms, least_ms[i], most_ms[i]);
	}
	/* as long as a configuration allows, and as often */
	any = (struct care){
		.retries = 100, .delay_ms = 315360000000, .delay_max_ms = 315360000000
	};
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(care_after(&any, &end, 1023, &delay_ms), CARE_RETRY);
		assert_in_range(delay_ms, 1, 315360000000);
	}
}

static void lack_of_memory_is_tried_with_more_first(void **state)
{
	const struct attempt_end oom = { .wait_status = EXITED(1), .is_oom = true };
	struct care care = care_with(1, 1);
	int64_t delay_ms;

	(void)state;
	care.vram_mib = 2000;
	assert_int_equal(care_after(&care, &oom, 0, &delay_ms), CARE_RETRY_OOM);
	assert_int_equal(care.vram_mib, 2500);
	assert_int_equal(delay_ms, 0);
	assert_int_equal(care_after(&care, &oom, 0, &delay_ms), CARE_RETRY);
	assert_int_equal(care.vram_mib, 2500);
	assert_int_equal(delay_ms, 3750);
	assert_int_equal(care_after(&care, &oom, 0, &delay_ms), CARE_DONE);
}

static void another_failure_uses_no_retry_for_memory(void **state)
{
	const struct attempt_end end = { .wait_status = EXITED(1) };
	struct care care = care_with(0, 3);
	int64_t delay_ms;

	(void)state;
	care.vram_mib = 2000;
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_DONE);
	assert_int_equal(care.oom_retries, 3);
	assert_int_equal(care.vram_mib, 2000);
}

static void the_next_declaration_is_a_quarter_more(void **state)
{
	static const struct {
		bool is_sharing;
		uint64_t declared, peak, most, next;
		enum care_next what;
	} cases[] = {
		{ true, 2000, 0, 0, 2500, CARE_RETRY_OOM },
		{ true, 2000, 1000, 0, 2500, CARE_RETRY_OOM },
		{ true, 2000, 2400, 0, 3000, CARE_RETRY_OOM },
		{ true, 2001, 0, 0, 2502, CARE_RETRY_OOM }, /* 2501.25, rounded up */
		{ true, 1, 0, 0, 2, CARE_RETRY_OOM },
		{ true, 2000, 0, 2500, 2500, CARE_RETRY_OOM },
		{ true, 2000, 0, 2400, 2400, CARE_RETRY_OOM },
		{ true, 2000, 9000, 2400, 2400, CARE_RETRY_OOM },
		{ true, 2000, 0, 2000, 2000, CARE_DONE },
		{ true, 2000, 0, 1000, 2000, CARE_DONE },
		{ false, 2000, 0, 0, 2500, CARE_RETRY_OOM },
		/* it has all of its GPUs: nothing to declare */
		{ false, 0, 9000, 0, 0, CARE_RETRY_OOM },
		/* it has a share, and now says how much */
		{ true, 0, 1000, 0, 1250, CARE_RETRY_OOM },
		{ true, 0, 1000, 1100, 1100, CARE_RETRY_OOM },
		{ true, 0, 0, 0, 0, CARE_RETRY_OOM },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct attempt_end end = { .wait_status = KILLED(SIGABRT),
			.is_oom = true,
			.peak_mib = cases[i].peak };
		struct care care = care_with(0, 1);
		int64_t delay_ms;

		care.is_sharing = cases[i].is_sharing;
		care.vram_mib = cases[i].declared;
		care.vram_max_mib = cases[i].most;
		if (care_after(&care, &end, 0, &delay_ms) != cases[i].what ||
			care.vram_mib != cases[i].next)
			fail_msg("case %zu: %llu", i, (unsigned long long)care.vram_mib);
	}
}

static void at_the_limit_it_goes_back_as_often_as_allowed(void **state)
{
	const struct attempt_end end = {
		.cause = CAUSE_LIMIT, .wait_status = KILLED(SIGTERM), .is_oom = true
	};
	struct care care = care_with(3, 3);
	int64_t delay_ms;

	(void)state;
	care.on_limit = ON_LIMIT_REQUEUE;
	care.requeues = 2;
	care.vram_mib = 2000;
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_REQUEUE);
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_REQUEUE);
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_DONE);
	care.requeues = UINT_MAX; /* any number */
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_REQUEUE);
	assert_true(care.requeues == UINT_MAX);
	care.on_limit = ON_LIMIT_KILL;
	assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_DONE);
	/* none of these was a failure */
	assert_int_equal(care.retries, 3);
	assert_int_equal(care.vram_mib, 2000);
}

static void who_is_preempted_always_comes_back(void **state)
{
	const struct attempt_end end = { .cause = CAUSE_PREEMPT,
		.wait_status = EXITED(0) };
	struct care care = care_with(0, 0);
	int64_t delay_ms;

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(care_after(&care, &end, 0, &delay_ms), CARE_REQUEUE);
	assert_int_equal(delay_ms, 0);
}

static void the_exit_status_says_how_it_ended(void **state)
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
		{ { .cause = CAUSE_CANCEL, .wait_status = KILLED(SIGTERM) }, 143 },
		{ { .cause = CAUSE_PREEMPT, .wait_status = KILLED(SIGTERM) }, 143 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(care_exit_status(&cases[i].end), cases[i].status);
}

static void what_was_seen_is_within_over_or_under(void **state)
{
	static const struct {
		uint64_t declared, seen;
		unsigned tolerance;
		enum use_verdict verdict;
	} cases[] = {
		{ 1000, 1000, 10, USE_WITHIN },
		{ 1000, 1100, 10, USE_WITHIN },
		{ 1000, 1101, 10, USE_OVER },
		{ 1000, 900, 10, USE_WITHIN },
		{ 1000, 899, 10, USE_UNDER },
		{ 15, 16, 10, USE_WITHIN }, /* 16.5 */
		{ 15, 17, 10, USE_OVER },
		{ 15, 14, 10, USE_WITHIN }, /* 13.5 */
		{ 15, 13, 10, USE_UNDER },
		{ 1000, 1001, 0, USE_OVER },
		{ 1000, 999, 0, USE_UNDER },
		{ 1000, 0, 100, USE_WITHIN },
		{ 1u << 30, (1u << 30) + 1, 0, USE_OVER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (care_compare(cases[i].declared, cases[i].seen, cases[i].tolerance) !=
			cases[i].verdict)
			fail_msg("case %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_not_to_be_tried_again_is_done),
		cmocka_unit_test(a_failure_is_tried_again_as_often_as_allowed),
		cmocka_unit_test(the_delay_doubles_up_to_the_most),
		cmocka_unit_test(lack_of_memory_is_tried_with_more_first),
		cmocka_unit_test(another_failure_uses_no_retry_for_memory),
		cmocka_unit_test(the_next_declaration_is_a_quarter_more),
		cmocka_unit_test(at_the_limit_it_goes_back_as_often_as_allowed),
		cmocka_unit_test(who_is_preempted_always_comes_back),
		cmocka_unit_test(the_exit_status_says_how_it_ended),
		cmocka_unit_test(what_was_seen_is_within_over_or_under),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
