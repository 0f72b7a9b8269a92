#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hook.h"

static struct hook_event event;

static struct hook_job new_job(const char *name)
{
	return (struct hook_job){ .name = name, .long_ms = HOOK_LONG_MS };
}

/* Asserts what the command is told at @line. */
#define assert_told(job, line, name_, state_, text_)       \
	do {                                               \
		assert_true(hook_take(job, line, &event)); \
		assert_string_equal(event.name, name_);    \
		assert_string_equal(event.state, state_);  \
		assert_string_equal(event.text, text_);    \
	} while (0)

static void a_job_is_told_from_its_start_to_its_end(void **state)
{
	struct hook_job job = new_job("train");

	(void)state;
	assert_false(hook_take(&job, "q 12 1000 0 ", &event));
	assert_told(&job, "s 12 2000 0 0,3", "started", "running",
		"job 12 'train' has started on GPU 0,3");
	assert_string_equal(event.status, "");
	assert_int_equal(event.ran_ms, 0);
	assert_told(&job, "i 12 5000 0 job 12 has not used GPU 0 for 5m", "idle",
		"running", "job 12 has not used GPU 0 for 5m");
	assert_told(&job, "e 12 7982000 0  ", "ended", "finished",
		"job 12 'train' ended: exit status 0, after 2h13m");
	assert_string_equal(event.status, "0");
	assert_string_equal(job.gpus, "0,3");
	assert_int_equal(event.ran_ms, 7980000);
	assert_true(job.has_ended);
}

static void an_end_has_the_state_and_the_words_of_its_cause(void **state)
{
	static const struct {
		const char *line, *state, *status, *text;
	} cases[] = {
		{ "e 1 5000 3  ", "failed", "3", "job 1 ended: exit status 3, after 4s" },
		{ "e 1 5000 -1  ", "ended", "", "job 1 ended, after 4s" },
		{ "e 1 5000 143 cancel bob", "cancelled", "143",
			"job 1 was cancelled by bob, after 4s" },
		{ "e 1 5000 124 limit ", "timed-out", "124",
			"job 1 was ended at its time limit, after 4s" },
		{ "e 1 5000 124 unused ", "timed-out", "124",
			"job 1 was ended because it did not use its GPUs, after 4s" },
		{ "e 1 5000 1 oom ", "oom", "1",
			"job 1 ran out of GPU memory: exit status 1, after 4s" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hook_job job = new_job("");

		assert_true(hook_take(&job, "s 1 1000 0 0", &event));
		assert_told(&job, cases[i].line, "ended", cases[i].state, cases[i].text);
		assert_string_equal(event.status, cases[i].status);
	}
}

static void a_job_may_end_without_a_start(void **state)
{
	struct hook_job job = new_job("");

	(void)state;
	assert_false(hook_take(&job, "q 7 1000 0 ", &event));
	assert_told(&job, "e 7 2000 124  ", "ended", "failed",
		"job 7 ended: exit status 124, before it started");
	assert_int_equal(event.ran_ms, 0);
}

static void a_job_that_is_sent_back_waits_again(void **state)
{
	struct hook_job job = new_job("");

	(void)state;
	assert_true(hook_take(&job, "s 7 1000 60000 0", &event));
	assert_told(&job, "p 7 31000 9 ", "preempted", "waiting",
		"job 7 was sent back into the queue, for job 9, after 30s");
	assert_true(hook_take(&job, "s 7 32000 60000 0", &event));
	assert_told(&job, "p 7 42000 0 ", "preempted", "waiting",
		"job 7 was sent back into the queue by a window, after 10s");
	/* the limit of the attempt that is over is not told any more */
	assert_int_equal(hook_wake_ms(&job), 42000 + HOOK_LONG_MS);
	assert_told(&job, "e 7 43000 143 cancel bob", "ended", "cancelled",
		"job 7 was cancelled by bob, while it waited to start again");
	assert_int_equal(event.ran_ms, 10000);

	job = new_job("");
	assert_true(hook_take(&job, "s 7 1000 0 0", &event));
	assert_false(hook_take(&job, "r 7 2000 0 ", &event));
	assert_told(
		&job, "s 7 9000 0 1", "started", "running", "job 7 has started on GPU 1");
}

static void a_long_wait_is_told_once(void **state)
{
	struct hook_job job = new_job("");

	(void)state;
	assert_false(hook_take(&job, "q 7 1000 0 ", &event));
	assert_int_equal(hook_wake_ms(&job), 1000 + HOOK_LONG_MS);
	assert_false(hook_tick(&job, 1000 + HOOK_LONG_MS - 1, &event));
	assert_true(hook_tick(&job, 1000 + HOOK_LONG_MS, &event));
	assert_string_equal(event.name, "waits-long");
	assert_string_equal(event.text, "job 7 has waited for 10m");
	assert_int_equal(hook_wake_ms(&job), INT64_MAX);
	assert_true(hook_take(&job, "s 7 900000 0 0", &event));
	assert_false(hook_take(&job, "r 7 901000 0 ", &event));
	assert_int_equal(hook_wake_ms(&job), INT64_MAX);
}

static void a_near_limit_is_told(void **state)
{
	struct hook_job job = new_job("");

	(void)state;
	assert_true(hook_take(&job, "s 7 1000 0 0", &event));
	assert_told(&job, "l 7 55002 5998 ", "limit-soon", "running",
		"job 7 reaches its time limit in 6s");
	assert_int_equal(event.ran_ms, 54002);
	assert_told(&job, "l 7 60999 1 ", "limit-soon", "running",
		"job 7 reaches its time limit in 1s");
	assert_int_equal(hook_wake_ms(&job), INT64_MAX);
}

static void names_cannot_break_the_line(void **state)
{
	struct hook_job job = new_job("a\nb\033[1m");

	(void)state;
	assert_told(
		&job, "s 7 1000 0 ", "started", "running", "job 7 'a?b?[1m' has started");
	assert_told(&job, "e 7 2000 143 cancel b\tob\033", "ended", "cancelled",
		"job 7 'a?b?[1m' was cancelled by b?ob?, after 1s");
}

static void a_line_that_is_not_understood_changes_nothing(void **state)
{
	static const char *const lines[] = { "", "s", "s 1", "s 1 2 3", "x 1 2 3 ",
		"s 1 2 3x", "s one 2 3 ", "12 1000 0 " };
	struct hook_job job = new_job("");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		assert_false(hook_take(&job, lines[i], &event));
		assert_int_equal(job.id, 0);
		assert_int_equal(job.started_ms, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_told_from_its_start_to_its_end),
		cmocka_unit_test(an_end_has_the_state_and_the_words_of_its_cause),
		cmocka_unit_test(a_job_may_end_without_a_start),
		cmocka_unit_test(a_job_that_is_sent_back_waits_again),
		cmocka_unit_test(a_long_wait_is_told_once),
		cmocka_unit_test(a_near_limit_is_told),
		cmocka_unit_test(names_cannot_break_the_line),
		cmocka_unit_test(a_line_that_is_not_understood_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
