#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "cluster_ended.h"

#define MARK "0123456789abcdef"
#define M MARK
#define NOW_MS INT64_C(1795534000000)

static struct cluster_ends read_ends(const char *lines)
{
	struct cluster_ends ends = CLUSTER_ENDS_NONE;
	char *text = strdup(lines);

	assert_non_null(text);
	assert_int_equal(cluster_ends_read(text, MARK, NOW_MS, &ends), 0);
	free(text);
	return ends;
}

#define LIMITED(id, state, code, submit, start, end, tres, nodes, limit, name) \
	id M "alice" M "1000" M state M code M submit M start M end M          \
	     "3" M tres M nodes M limit M name "\n"
#define LINE(id, state, code, submit, start, end, tres, nodes, name) \
	LIMITED(id, state, code, submit, start, end, tres, nodes, "UNLIMITED", name)

static void an_end_is_read(void **state)
{
	struct cluster_ends ends = read_ends(
		LINE("9", "FAILED", "3:0", "1795533500", "1795533503", "1795533603",
			"billing=1,cpu=1,gres/gpu=2,node=1", "n[1-2]", "arr"));
	const struct history_end *end = &ends.list[0].end;

	(void)state;
	assert_int_equal(ends.count, 1);
	assert_true(ends.list[0].is_over);
	assert_int_equal(end->ticket, 9);
	assert_int_equal(end->attempt, 1);
	assert_int_equal(end->uid, 1000);
	assert_string_equal(end->user, "alice");
	assert_int_equal(end->gpu_count, 2);
	assert_string_equal(end->gpus, "2 on n[1-2]");
	assert_int_equal(end->waited_ms, 3000);
	assert_int_equal(end->since_ms, INT64_C(1795533503000));
	assert_int_equal(end->gone_ms, INT64_C(1795533603000));
	assert_string_equal(end->status, "3");
	assert_int_equal(history_state(end), END_FAILED);
	assert_string_equal(end->name, "arr");
	cluster_ends_release(&ends);
}

static void each_state_has_its_end(void **state)
{
	static const struct {
		const char *state, *code;
		enum end_state end;
		const char *status, *by;
	} cases[] = {
		{ "COMPLETED", "0:0", END_FINISHED, "0", "" },
		{ "CANCELLED by 1000", "0:0", END_CANCELLED, "143", "1000" },
		{ "TIMEOUT", "0:0", END_TIMED_OUT, "124", "" },
		{ "DEADLINE", "0:0", END_TIMED_OUT, "124", "" },
		{ "OUT_OF_MEMORY", "0:125", END_FAILED, "137", "" },
		{ "PREEMPTED", "0:0", END_PREEMPTED, "143", "" },
		{ "NODE_FAIL", "0:0", END_LOST, "125", "" },
		{ "FAILED", "0:9", END_FAILED, "137", "" },
		{ "REQUEUED", "0:0", END_UNKNOWN, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char line[512];
		struct cluster_ends ends;

		(void)snprintf(line, sizeof(line),
			LINE("9", "%s", "%s", "1", "2", "3", "cpu=1", "n1", "x"),
			cases[i].state, cases[i].code);
		ends = read_ends(line);
		assert_int_equal(ends.count, 1);
		assert_int_equal(history_state(&ends.list[0].end), cases[i].end);
		assert_string_equal(ends.list[0].end.status, cases[i].status);
		assert_string_equal(ends.list[0].end.by, cases[i].by);
		cluster_ends_release(&ends);
	}
}

static void a_limit_in_seconds_is_seen_by_the_exit_status(void **state)
{
	static const struct {
		const char *code, *start, *limit;
		enum end_state end;
	} cases[] = {
		/* a limit of 61 to 120 s is two minutes to Slurm */
		{ "124:0", "940", "2", END_TIMED_OUT },
		{ "124:0", "941", "2", END_FAILED },
		{ "124:0", "999", "1", END_TIMED_OUT },
		{ "124:0", "1", "UNLIMITED", END_FAILED },
		{ "124:0", "1", "Partition_Limit", END_FAILED },
		{ "1:0", "1", "2", END_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char line[512];
		struct cluster_ends ends;

		(void)snprintf(line, sizeof(line),
			LIMITED("9", "FAILED", "%s", "1", "%s", "1000", "cpu=1", "n1",
				"%s", "x"),
			cases[i].code, cases[i].start, cases[i].limit);
		ends = read_ends(line);
		assert_int_equal(history_state(&ends.list[0].end), cases[i].end);
		cluster_ends_release(&ends);
	}
}

static void jobs_that_could_never_start_have_failed(void **state)
{
	struct cluster_ends ends = read_ends(LINE("6", "CANCELLED", "0:0", "10", "None",
		"20", "", "None assigned", "x") LINE("7", "FAILED", "1:0", "10", "20",
		"20", "", "None assigned", "x"));

	(void)state;
	assert_int_equal(history_state(&ends.list[0].end), END_FAILED);
	assert_string_equal(ends.list[0].end.status, "124");
	assert_int_equal(history_state(&ends.list[1].end), END_FAILED);
	assert_string_equal(ends.list[1].end.status, "125");
	cluster_ends_release(&ends);
}

static void jobs_that_wait_are_left_out_and_those_that_run_end_now(void **state)
{
	struct cluster_ends ends = read_ends(
		LINE("5", "PENDING", "0:0", "1795533503", "Unknown", "Unknown", "",
			"None assigned", "wait") LINE("2", "RUNNING", "0:0", "1795533503",
			"1795533503", "Unknown", "gres/gpu=3", "n[2-3]", "two"));

	(void)state;
	assert_int_equal(ends.count, 1);
	assert_false(ends.list[0].is_over);
	assert_int_equal(ends.list[0].end.gone_ms, NOW_MS);
	cluster_ends_release(&ends);
}

static void a_job_cancelled_in_the_queue_has_not_run(void **state)
{
	struct cluster_ends ends = read_ends(LINE("6", "CANCELLED by 0", "0:0",
		"1795533503", "1795533600", "1795533600", "", "None assigned", "held"));

	(void)state;
	assert_int_equal(ends.list[0].end.since_ms, 0);
	assert_int_equal(ends.list[0].end.waited_ms, 97000);
	assert_string_equal(ends.list[0].end.gpus, "");
	cluster_ends_release(&ends);
}

/* Slurm counts ids from the beginning after a long time. */
static void only_an_attempt_that_went_on_has_a_next_one(void **state)
{
	struct cluster_ends ends = read_ends(LINE("3", "NODE_FAIL", "0:0", "100", "110",
		"120", "gres/gpu=1", "n4", "greed") LINE("3", "COMPLETED", "0:0", "121",
		"130", "140", "gres/gpu=1", "n1", "greed") LINE("3", "COMPLETED", "0:0",
		"900", "910", "920", "gres/gpu=1", "n1", "greed"));

	(void)state;
	assert_int_equal(ends.count, 3);
	assert_int_equal(ends.list[0].end.attempt, 1);
	assert_int_equal(ends.list[1].end.attempt, 2);
	assert_int_equal(ends.list[2].end.attempt, 1);
	cluster_ends_release(&ends);
}

static void names_cannot_forge_a_line(void **state)
{
	struct cluster_ends ends =
		read_ends(LINE("9", "COMPLETED", "0:0", "1", "2", "3", "", "n1",
			"x\n7\x1f"
			"bob\x1f"
			"1001\x1f"
			"FAILED\x1f"
			"1:0\x1f"
			"1\x1f"
			"2\x1f"
			"3\x1f"
			"4\x1f"
			"\x1fn1\x1f"
			"1\x1fy\n\n7" M "bob" M "1001"));

	(void)state;
	assert_int_equal(ends.count, 1);
	assert_string_equal(ends.list[0].end.name, "x");
	cluster_ends_release(&ends);
}

static void the_latest_end_is_last(void **state)
{
	struct cluster_ends ends = read_ends(LINE("2", "COMPLETED", "0:0", "1", "2", "50",
		"", "n1", "b") LINE("1", "COMPLETED", "0:0", "1", "2", "90", "", "n1",
		"a") LINE("3", "COMPLETED", "0:0", "1", "2", "50", "", "n1", "c"));

	(void)state;
	assert_int_equal(ends.list[0].end.ticket, 2);
	assert_int_equal(ends.list[1].end.ticket, 3);
	assert_int_equal(ends.list[2].end.ticket, 1);
	cluster_ends_release(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_is_read),
		cmocka_unit_test(each_state_has_its_end),
		cmocka_unit_test(a_limit_in_seconds_is_seen_by_the_exit_status),
		cmocka_unit_test(jobs_that_could_never_start_have_failed),
		cmocka_unit_test(jobs_that_wait_are_left_out_and_those_that_run_end_now),
		cmocka_unit_test(a_job_cancelled_in_the_queue_has_not_run),
		cmocka_unit_test(only_an_attempt_that_went_on_has_a_next_one),
		cmocka_unit_test(names_cannot_forge_a_line),
		cmocka_unit_test(the_latest_end_is_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
