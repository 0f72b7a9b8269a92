/* When a job that does not use its GPUs is told, warned and ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "use_rule.h"

enum { MINUTE_MS = 60000, HOUR_MS = 60 * MINUTE_MS };

static void a_job_may_ask_for_a_longer_time_only(void **state)
{
	static const struct {
		struct use_limits all, own;
	} cases[] = {
		{ { 30, 120, 0 }, { 30, 120, 0 } },
		{ { 30, 120, 20 }, { 30, 120, 0 } },
		{ { 30, 120, 60 }, { 60, 120, 0 } },
		{ { 30, 120, 300 }, { 300, 300, 0 } },
		{ { 30, 120, -1 }, { 0, 0, 0 } },
		{ { 0, 120, 300 }, { 0, 300, 0 } },
		{ { 30, 0, 300 }, { 300, 0, 0 } },
		{ { 0, 0, 300 }, { 0, 0, 0 } },
		{ { 0, 0, -1 }, { 0, 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct use_limits own = use_limits_of_job(&cases[i].all);

		if (own.after_ms != cases[i].own.after_ms ||
			own.end_ms != cases[i].own.end_ms)
			fail_msg("case %zu", i);
	}
}

/* Times are minutes; the lead time of an end after 120 minutes is 10 minutes. */
static const struct {
	int after, end, unused, before, warned, now;
	unsigned warnings;
	bool is_waited_for;
	enum use_step step;
	int end_at;
} cases[] = {
	/* told once, when the time is over */
	{ 30, 0, 29, 28, 0, 1029, 0, false, USE_NOTHING, 0 },
	{ 30, 0, 30, 29, 0, 1030, 0, false, USE_TELL, 0 },
	{ 30, 0, 31, 30, 0, 1031, 0, false, USE_NOTHING, 0 },
	{ 30, 0, 45, 0, 0, 1045, 0, false, USE_TELL, 0 },
	{ 30, 0, 300, 299, 0, 1300, 0, true, USE_NOTHING, 0 },
	{ 0, 0, 300, 0, 0, 1300, 0, true, USE_NOTHING, 0 },
	/* without a job that waits there is no warning and no end */
	{ 30, 120, 115, 114, 0, 1115, 0, false, USE_NOTHING, 0 },
	{ 30, 120, 600, 599, 0, 1600, 0, false, USE_NOTHING, 0 },
	{ 30, 120, 600, 599, 1590, 1600, 2, false, USE_NOTHING, 0 },
	/* two warnings: 10 and 2 minutes before the end */
	{ 30, 120, 109, 108, 0, 1109, 0, true, USE_NOTHING, 0 },
	{ 30, 120, 110, 109, 0, 1110, 0, true, USE_WARN_FIRST, 1120 },
	{ 30, 120, 111, 110, 1110, 1111, 1, true, USE_NOTHING, 0 },
	{ 30, 120, 117, 116, 1110, 1117, 1, true, USE_NOTHING, 0 },
	{ 30, 120, 118, 117, 1110, 1118, 1, true, USE_WARN_LAST, 1120 },
	{ 30, 120, 119, 118, 1110, 1119, 2, true, USE_NOTHING, 0 },
	{ 30, 120, 120, 119, 1110, 1120, 2, true, USE_END, 1120 },
	/* jobs that wait late: the lead time begins with the first warning */
	{ 30, 120, 600, 599, 0, 1600, 0, true, USE_WARN_FIRST, 1610 },
	{ 30, 120, 601, 600, 1600, 1601, 1, true, USE_NOTHING, 0 },
	{ 30, 120, 608, 607, 1600, 1608, 1, true, USE_WARN_LAST, 1610 },
	{ 30, 120, 609, 608, 1600, 1609, 2, true, USE_NOTHING, 0 },
	{ 30, 120, 610, 609, 1600, 1610, 2, true, USE_END, 1610 },
	/* late samples: never an end without the last warning before it */
	{ 30, 120, 150, 30, 0, 1150, 0, true, USE_WARN_FIRST, 1160 },
	{ 30, 120, 170, 150, 1150, 1170, 1, true, USE_WARN_LAST, 1160 },
	{ 30, 120, 172, 170, 1150, 1172, 2, true, USE_END, 1160 },
	/* never told, but ended */
	{ 0, 120, 110, 109, 0, 1110, 0, true, USE_WARN_FIRST, 1120 },
	/* an end before it would be told: the warning tells it */
	{ 30, 8, 6, 5, 0, 1006, 0, true, USE_WARN_FIRST, 1008 },
	{ 30, 8, 8, 7, 1006, 1008, 2, true, USE_END, 1008 },
	/* an end that is shorter than the interval of the samples, 60 minutes here */
	{ 0, 8, 60, 0, 0, 1060, 0, true, USE_WARN_FIRST, 1062 },
	{ 0, 8, 120, 60, 1060, 1120, 1, true, USE_WARN_LAST, 1062 },
	{ 0, 8, 180, 120, 1060, 1180, 2, true, USE_END, 1062 },
	/* used again */
	{ 30, 120, 0, 119, 0, 1120, 0, true, USE_NOTHING, 0 },
};

static void a_table_of_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct use_case now = {
			.limits = { .after_ms = (int64_t)cases[i].after * MINUTE_MS,
				.end_ms = (int64_t)cases[i].end * MINUTE_MS },
			.now_ms = (int64_t)cases[i].now * MINUTE_MS,
			.unused_ms = (int64_t)cases[i].unused * MINUTE_MS,
			.before_ms = (int64_t)cases[i].before * MINUTE_MS,
			.warned_ms = (int64_t)cases[i].warned * MINUTE_MS,
			.warnings = cases[i].warnings,
			.is_waited_for = cases[i].is_waited_for,
		};
		int64_t end_at_ms = 0;
		enum use_step step = use_rule_judge(&now, &end_at_ms);

		if (step != cases[i].step)
			fail_msg("case %zu: step %d", i, (int)step);
		if (step >= USE_WARN_FIRST && step < USE_END &&
			end_at_ms != (int64_t)cases[i].end_at * MINUTE_MS)
			fail_msg("case %zu: end at %lld", i,
				(long long)end_at_ms / MINUTE_MS);
	}
}

/* What happened in a run. */
struct course {
	unsigned told, warned;
	int64_t first_ms, last_ms, end_ms; /* -1: not in this run */
};

/* Samples an unused job every @interval_ms for @run_ms; other jobs wait from @from_ms to @to_ms. */
static struct course run(struct use_limits limits, int64_t interval_ms, int64_t run_ms,
	int64_t from_ms, int64_t to_ms)
{
	struct course course = { .first_ms = -1, .last_ms = -1, .end_ms = -1 };
	struct use_case now = { .limits = use_limits_of_job(&limits) };

	for (now.now_ms = interval_ms; now.now_ms < run_ms; now.now_ms += interval_ms) {
		int64_t end_at_ms = 0;
		enum use_step step;

		now.unused_ms = now.now_ms - interval_ms;
		now.is_waited_for = now.now_ms >= from_ms && now.now_ms < to_ms;
		step = use_rule_judge(&now, &end_at_ms);
		if (step == USE_TELL)
			course.told++;
		if (step == USE_WARN_FIRST)
			course.first_ms = now.warned_ms = now.now_ms;
		if (step == USE_WARN_LAST)
			course.last_ms = now.now_ms;
		if (step == USE_WARN_FIRST || step == USE_WARN_LAST) {
			assert_true(end_at_ms > now.now_ms - interval_ms);
			course.warned++;
			now.warnings++;
		}
		if (!now.is_waited_for)
			now.warned_ms = now.warnings = 0;
		now.before_ms = now.unused_ms;
		if (step == USE_END) {
			course.end_ms = now.now_ms;
			break;
		}
	}
	return course;
}

static void each_end_has_two_warnings_and_the_lead_time(void **state)
{
	static const int64_t intervals[] = { 100, 1000, 7777, 60000, 3600000 };
	static const int64_t ends[] = { 1000, 3000, 60000, 7200000, 86400000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(intervals); i++)
		for (size_t at = 0; at < ARRAY_SIZE(ends); at++)
			for (int late = 0; late < 3; late++) {
				int64_t lead_ms = min_i64(10 * MINUTE_MS, ends[at] / 4);
				struct course course = run(
					(struct use_limits){ 0, ends[at], 0 },
					intervals[i], 5 * (ends[at] + intervals[i]),
					late * ends[at], INT64_MAX);

				assert_int_equal(course.warned, 2);
				assert_true(course.first_ms < course.last_ms);
				assert_true(course.last_ms < course.end_ms);
				assert_true(course.end_ms >= ends[at]);
				assert_true(course.end_ms >= course.first_ms + lead_ms);
			}
}

static void without_jobs_that_wait_a_job_is_told_once_and_never_ended(void **state)
{
	struct course course = run((struct use_limits){ 30 * MINUTE_MS, 2 * HOUR_MS, 0 },
		MINUTE_MS, 100 * HOUR_MS, INT64_MAX, INT64_MAX);

	(void)state;
	assert_int_equal(course.told, 1);
	assert_int_equal(course.warned, 0);
	assert_int_equal(course.end_ms, -1);
}

static void jobs_that_stop_waiting_take_the_warnings_back(void **state)
{
	/* they wait from 3:00 to 3:05, so after the first warning only */
	struct course course = run((struct use_limits){ 30 * MINUTE_MS, 2 * HOUR_MS, 0 },
		MINUTE_MS, 24 * HOUR_MS, 3 * HOUR_MS, 3 * HOUR_MS + 5 * MINUTE_MS);

	(void)state;
	assert_int_equal(course.warned, 1);
	assert_int_equal(course.end_ms, -1);
}

static void a_job_with_idle_ok_is_left_alone(void **state)
{
	struct course course = run((struct use_limits){ 30 * MINUTE_MS, 2 * HOUR_MS, -1 },
		MINUTE_MS, 100 * HOUR_MS, 0, INT64_MAX);

	(void)state;
	assert_int_equal(course.told, 0);
	assert_int_equal(course.warned, 0);
	assert_int_equal(course.end_ms, -1);
	course = run((struct use_limits){ 30 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS },
		MINUTE_MS, 100 * HOUR_MS, 0, INT64_MAX);
	assert_true(course.end_ms >= 5 * HOUR_MS);
	assert_true(course.first_ms >= 5 * HOUR_MS - 10 * MINUTE_MS);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_may_ask_for_a_longer_time_only),
		cmocka_unit_test(a_table_of_cases),
		cmocka_unit_test(each_end_has_two_warnings_and_the_lead_time),
		cmocka_unit_test(
			without_jobs_that_wait_a_job_is_told_once_and_never_ended),
		cmocka_unit_test(jobs_that_stop_waiting_take_the_warnings_back),
		cmocka_unit_test(a_job_with_idle_ok_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
