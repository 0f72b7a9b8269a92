#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "array.h"
#include "usual.h"

enum { MINUTE_MS = 60000 };

static const int64_t BEGIN_MS = INT64_C(1700000000000);

static struct usual_kind kind;
static struct usual usual;

static int setup(void **state)
{
	(void)state;
	kind = usual_kind_of(7, "", 0, "train 1");
	usual = (struct usual){ .runs = 0 };
	return 0;
}

/* An end of user 7's command "train 1" that took so long. */
static struct history_end ran(int64_t minutes)
{
	return (struct history_end){ .ticket = 1,
		.uid = 7,
		.since_ms = BEGIN_MS,
		.alive_ms = BEGIN_MS + minutes * MINUTE_MS,
		.gone_ms = BEGIN_MS + minutes * MINUTE_MS,
		.status = "0",
		.command = "train 1" };
}

static void note_run(struct history_end end)
{
	usual_note(&usual, &kind, &end);
}

static bool are_alike(
	const char *name_a, const char *a, const char *name_b, const char *b)
{
	struct usual_kind one = usual_kind_of(1, name_a, 0, a);
	struct usual_kind other = usual_kind_of(1, name_b, 0, b);
	bool is_same = usual_kind_is_same(&one, &other);

	assert_int_equal(usual_kind_is_same(&other, &one), is_same);
	other.uid = 2;
	assert_false(usual_kind_is_same(&one, &other));
	return is_same;
}

static void names_or_commands_without_numbers_make_jobs_alike(void **state)
{
	(void)state;
	assert_true(are_alike("a", "x", "a", "y"));
	assert_false(are_alike("a1", "x", "a2", "x"));
	assert_false(are_alike("a", "x", "", "x"));
	assert_true(are_alike("", "train --seed 1", "", "train --seed 23"));
	assert_false(are_alike("", "train --seed 1", "", "train --lr 1"));
	assert_false(are_alike("", "train", "", "train --lr 1"));
}

/* A record has room for only the beginning of a long command. */
static void a_command_that_was_cut_is_like_every_longer_one(void **state)
{
	char long_a[400] = "train ", long_b[400] = "train ";

	(void)state;
	assert_true(are_alike("", "train --d…", "", "train --data 1"));
	assert_false(are_alike("", "train --d…", "", "train --lr 1"));
	assert_false(are_alike("", "train --d…", "", "train"));
	memset(long_a + 6, 'x', 300);
	memset(long_b + 6, 'x', 310);
	assert_true(are_alike("", long_a, "", long_b));
}

static void too_few_runs_say_nothing(void **state)
{
	(void)state;
	note_run(ran(10));
	note_run(ran(20));
	assert_int_equal(usual_run_ms(&usual, 50, 0), 0);
	note_run(ran(30));
	assert_int_equal(usual_run_ms(&usual, 50, 0), 20 * MINUTE_MS);
	assert_int_equal(usual_run_ms(&usual, 90, 0), 30 * MINUTE_MS);
}

static void runs_that_were_cut_short_or_are_uncertain_do_not_count(void **state)
{
	struct history_end ends[7];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		ends[i] = ran(100);
	ends[0].uid = 8;
	text_copy(ends[1].how, sizeof(ends[1].how), HISTORY_CANCEL);
	text_copy(ends[2].how, sizeof(ends[2].how), HISTORY_PREEMPT);
	text_copy(ends[3].status, sizeof(ends[3].status), "1");
	ends[4].since_ms = 0;
	ends[5].alive_ms -= 11 * MINUTE_MS;
	text_copy(ends[6].command, sizeof(ends[6].command), "test 1");
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		note_run(ends[i]);
	assert_int_equal(usual.runs, 0);
}

static void ends_at_the_limit_and_of_unknown_status_count(void **state)
{
	struct history_end ends[3];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		ends[i] = ran(100);
	text_copy(ends[0].how, sizeof(ends[0].how), HISTORY_LIMIT);
	ends[1].status[0] = '\0';
	ends[2].alive_ms -= 9 * MINUTE_MS;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		note_run(ends[i]);
	assert_int_equal(usual.runs, 3);
}

static void only_the_newest_runs_count(void **state)
{
	(void)state;
	for (int64_t minutes = USUAL_RUNS; minutes; minutes--)
		note_run(ran(minutes));
	note_run(ran(1000));
	assert_int_equal(usual.runs, USUAL_RUNS);
	assert_int_equal(usual_run_ms(&usual, 50, 0), 8 * MINUTE_MS);
	assert_int_equal(usual_run_ms(&usual, 90, 0), 15 * MINUTE_MS);
	assert_int_equal(usual_run_ms(&usual, 100, 0), 16 * MINUTE_MS);
}

/* A job that has run for an hour is none of those that took a minute. */
static void a_job_that_runs_is_compared_with_longer_runs_only(void **state)
{
	(void)state;
	note_run(ran(1));
	note_run(ran(1));
	note_run(ran(120));
	note_run(ran(180));
	assert_int_equal(usual_run_ms(&usual, 50, 0), 1 * MINUTE_MS);
	assert_int_equal(usual_run_ms(&usual, 50, 60 * MINUTE_MS), 120 * MINUTE_MS);
	assert_int_equal(usual_run_ms(&usual, 50, 120 * MINUTE_MS), 180 * MINUTE_MS);
	assert_int_equal(usual_run_ms(&usual, 50, 180 * MINUTE_MS), 0);
}

static void memory_is_that_of_the_gpu_with_most_if_it_was_sampled(void **state)
{
	static const char *const peaks[] = { "100,300,200", "500", "", "400" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(peaks); i++) {
		struct history_end end = ran(1);

		text_copy(end.peaks, sizeof(end.peaks), peaks[i]);
		end.spans_run = 1;
		note_run(end);
		end.spans_run = 0; /* the samples may have missed the most */
		note_run(end);
		assert_int_equal(usual_peak_mib(&usual, 50), i < 3 ? 0 : 400);
	}
	assert_int_equal(usual_peak_mib(&usual, 90), 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			names_or_commands_without_numbers_make_jobs_alike, setup),
		cmocka_unit_test_setup(
			a_command_that_was_cut_is_like_every_longer_one, setup),
		cmocka_unit_test_setup(too_few_runs_say_nothing, setup),
		cmocka_unit_test_setup(
			runs_that_were_cut_short_or_are_uncertain_do_not_count, setup),
		cmocka_unit_test_setup(
			ends_at_the_limit_and_of_unknown_status_count, setup),
		cmocka_unit_test_setup(only_the_newest_runs_count, setup),
		cmocka_unit_test_setup(
			a_job_that_runs_is_compared_with_longer_runs_only, setup),
		cmocka_unit_test_setup(
			memory_is_that_of_the_gpu_with_most_if_it_was_sampled, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
