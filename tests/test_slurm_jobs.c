/* Jobs for squeue: what is read from JSON, and the lines of squeue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <cmocka.h>

#include "slurm_format.h"
#include "slurm_operands.h"

static const char STATUS[] =
	"{\"host\":\"box.example\",\"taken_unix_ms\":1000000,"
	"\"gpus\":[{\"index\":0,\"ticket\":4,\"leases\":["
	"{\"ticket\":4,\"name\":\"two\",\"user\":\"ann\",\"command\":\"x\",\"age_ms\":7000,"
	"\"started_unix_ms\":993000,\"limit_ms\":3600000,\"lingering\":false}]},"
	"{\"index\":1,\"leases\":[{\"ticket\":4,\"name\":\"two\"},"
	"{\"ticket\":3,\"name\":null,\"user\":\"bob\",\"command\":\"/bin/sle\\u001bep 9\","
	"\"age_ms\":93784000,\"started_unix_ms\":1,\"limit_ms\":null,\"lingering\":true}]}],"
	"\"queue\":[{\"ticket\":9,\"name\":\"late\",\"user\":\"ann\",\"gpus\":2,"
	"\"priority\":5,\"limit_ms\":172800000,\"since_unix_ms\":5,\"reason_kind\":\"leased\","
	"\"held_by\":null,\"stopped\":false},"
	"{\"ticket\":8,\"name\":null,\"user\":\"ann\",\"command\":null,\"gpus\":1,"
	"\"reason_kind\":\"held\",\"held_by\":9}],\"queue_is_cut\":true,"
	"\"running_without_gpus\":[{\"ticket\":5,\"name\":null,\"user\":\"ann\","
	"\"command\":\"'/a b/run me' x\",\"age_ms\":0,\"started_unix_ms\":1000000}]}";

static struct slurm_jobs jobs_of(const char *text)
{
	struct slurm_jobs jobs = { .count = 0 };

	assert_int_equal(slurm_jobs_read(text, strlen(text), &jobs), 0);
	slurm_jobs_sort(&jobs);
	return jobs;
}

/* Asserts that the lines of all jobs in @format, with "/" between them, are @expected. */
static void assert_lines(
	const struct slurm_jobs *jobs, const char *format, const char *expected)
{
	char out[2048];
	struct text text = TEXT_ON(out);

	for (size_t i = 0; i < jobs->count; i++) {
		text_add(&text, i ? "/" : "");
		slurm_format_line(format, jobs, &jobs->list[i], &text);
	}
	assert_string_equal(out, expected);
}

static void jobs_of_a_status_are_those_of_squeue(void **state)
{
	struct slurm_jobs jobs = jobs_of(STATUS);

	(void)state;
	assert_true(jobs.is_cut);
	assert_lines(&jobs, "%i %t", "9 PD/8 PD/4 R/5 R/3 CG");
	assert_lines(&jobs, "%j", "late/-/two/run me/sle?ep");
	assert_lines(&jobs, "%R", "(Resources)/(Dependency)/box/box/box");
	assert_lines(&jobs, "%M %l",
		"0:00 2-00:00:00/0:00 UNLIMITED/0:07 1:00:00/"
		"0:00 UNLIMITED/1-02:03:04 UNLIMITED");
	assert_lines(&jobs, "%b", "gres:gpu:2/gres:gpu:1/gres:gpu:2/N/A/gres:gpu:1");
	assert_lines(&jobs, "%u%N%C%D%P%a%T",
		"ann11gpulease(null)PENDING/ann11gpulease(null)PENDING/"
		"annbox11gpulease(null)RUNNING/annbox11gpulease(null)RUNNING/"
		"bobbox11gpulease(null)COMPLETING");
	slurm_jobs_release(&jobs);
}

static void a_job_by_its_id_has_its_latest_end(void **state)
{
	struct slurm_jobs jobs = jobs_of(
		"{\"taken_unix_ms\":400000,\"jobs\":["
		"{\"ticket\":1,\"state\":\"failed\",\"command\":\"c\",\"waiting\":null,"
		"\"running\":null,\"gpus\":[],\"ended\":[{\"ticket\":1,\"name\":\"first\","
		"\"state\":\"preempted\",\"gone_unix_ms\":1},{\"ticket\":1,\"name\":\"n\","
		"\"state\":\"failed\",\"status\":3,\"gone_unix_ms\":100001,"
		"\"gpus\":[0,1]}]},"
		"{\"ticket\":2,\"state\":\"finished\",\"ended\":[{\"gone_unix_ms\":99999}]},"
		"{\"ticket\":3,\"state\":\"running\",\"log\":\"/l\",\"running\":{\"name\":\"r\","
		"\"started_unix_ms\":1},\"gpus\":[2,3],\"ended\":[{\"name\":\"old\"}]}]}");

	(void)state;
	assert_lines(&jobs, "%i %j %T %b",
		"3 r RUNNING gres:gpu:2/2 - COMPLETED N/A/1 n FAILED gres:gpu:2");
	assert_true(is_slurm_job_known(&jobs, slurm_jobs_find(&jobs, 1)));
	assert_false(is_slurm_job_known(&jobs, slurm_jobs_find(&jobs, 2)));
	assert_true(is_slurm_job_known(&jobs, slurm_jobs_find(&jobs, 3)));
	assert_string_equal(slurm_jobs_find(&jobs, 3)->log, "/l");
	slurm_jobs_release(&jobs);
}

static void each_reason_has_slurms_word(void **state)
{
	static const struct {
		const char *member, *word;
	} rows[] = {
		{ "\"reason_kind\":\"leased\"", "Resources" },
		{ "\"reason_kind\":\"gpu\"", "Resources" },
		{ "\"reason_kind\":\"behind\"", "Priority" },
		{ "\"reason_kind\":\"held\"", "BeginTime" },
		{ "\"reason_kind\":\"held\",\"held_by\":4", "Dependency" },
		{ "\"reason_kind\":\"limit\"", "QOSMaxGRESPerUser" },
		{ "\"reason_kind\":\"leased\",\"stopped\":true", "JobHeldUser" },
		{ "\"reason_kind\":null", "None" },
		{ "\"reason_kind\":\"new\"", "None" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[160];
		struct slurm_jobs jobs;

		(void)snprintf(text, sizeof(text), "{\"queue\":[{\"ticket\":1,%s}]}",
			rows[i].member);
		jobs = jobs_of(text);
		assert_lines(&jobs, "%r", rows[i].word);
		slurm_jobs_release(&jobs);
	}
}

static void a_task_of_an_array_has_the_id_of_the_array(void **state)
{
	struct slurm_jobs jobs =
		jobs_of("{\"queue\":[{\"ticket\":6,\"name\":\"4_2\",\"user\":\"ann\"},"
			"{\"ticket\":7,\"name\":\"4_3\",\"user\":\"bob\"},"
			"{\"ticket\":8,\"name\":\"9_1\",\"user\":\"ann\"}],"
			"\"running_without_gpus\":[{\"ticket\":4,\"name\":\"sweep\","
			"\"user\":\"ann\",\"started_unix_ms\":1}]}");
	const struct slurm_job *job = slurm_jobs_find(&jobs, 6);

	(void)state;
	assert_lines(&jobs, "%i %j %F %K %A",
		"4_2 sweep 4 2 6/7 4_3 7 N/A 7/8 9_1 8 N/A 8/4 sweep 4 N/A 4");
	assert_true(is_slurm_job_named(job, "4_2", 3));
	assert_true(is_slurm_job_named(job, "4", 1));
	assert_true(is_slurm_job_named(job, "6", 1));
	assert_true(is_slurm_job_named(job, "4_[0-2]", 7));
	assert_true(is_slurm_job_named(job, "4_*", 3));
	assert_false(is_slurm_job_named(job, "4_3", 3));
	assert_false(is_slurm_job_named(job, "4_[0-1,3]", 9));
	assert_false(is_slurm_job_named(job, "5_*", 3));
	assert_false(is_slurm_job_named(slurm_jobs_find(&jobs, 7), "4", 1));
	slurm_jobs_release(&jobs);
}

static void a_task_outlives_its_array_in_the_history(void **state)
{
	struct slurm_jobs jobs = jobs_of(
		"{\"jobs\":[{\"ticket\":4,\"name\":\"sweep\",\"user\":\"ann\","
		"\"state\":\"failed\",\"gpu_count\":0},"
		"{\"ticket\":6,\"name\":\"4_2\",\"user\":\"ann\",\"gpu_count\":1},"
		"{\"ticket\":7,\"name\":\"6_1\",\"user\":\"ann\",\"gpu_count\":1},"
		"{\"ticket\":8,\"name\":\"7_1\",\"user\":\"ann\"}]}");

	(void)state;
	assert_lines(&jobs, "%i %j", "4_2 sweep/7 6_1/8 7_1/4 sweep");
	slurm_jobs_release(&jobs);
}

static void what_is_no_status_is_refused(void **state)
{
	static const char *const texts[] = { "", "[]", "{\"queue\":[{]}",
		"{\"jobs\":[1]}", "{\"gpus\":[{\"leases\":[2]}]}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct slurm_jobs jobs = { .count = 0 };

		assert_int_equal(
			slurm_jobs_read(texts[i], strlen(texts[i]), &jobs), -EINVAL);
		slurm_jobs_release(&jobs);
	}
}

static void a_format_has_widths_and_other_text(void **state)
{
	static const struct {
		const char *format, *heading, *line;
	} rows[] = {
		{ "%.6i|%6i|", " JOBID|JOBID |", "     7|7     |" },
		{ "%2j|%.3j", "NA|NAM", "n\xc3\xa4|n\xc3\xa4m" },
		{ "%.9j|%7j|", "     NAME|NAME   |", "   n\xc3\xa4me 7|n\xc3\xa4me 7 |" },
		{ "x", "x", "x" },
		{ "", "", "" },
		{ "a%ib", "aJOBIDb", "a7b" },
		{ "%i %", "JOBID ", "7 " },
		{ "%%%i%%%%n%", "JOBIDREQ_NODES", "7" },
		{ "%i %,%5", "JOBID %,%5", "7 %,%5" },
		{ "%.%5%2i", "%.%5JO", "%.%57 " },
	};
	struct slurm_jobs jobs =
		jobs_of("{\"queue\":[{\"ticket\":7,\"name\":\"n\xc3\xa4me 7\"}]}");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[128];
		struct text text = TEXT_ON(out);

		slurm_format_line(rows[i].format, &jobs, NULL, &text);
		assert_string_equal(out, rows[i].heading);
		text = TEXT_ON(out);
		slurm_format_line(rows[i].format, &jobs, &jobs.list[0], &text);
		assert_string_equal(out, rows[i].line);
	}
	slurm_jobs_release(&jobs);
}

static void unknown_fields_are_found(void **state)
{
	const char *at = "%i %5!%.18i% %%%5%j%";

	(void)state;
	assert_int_equal(slurm_format_next_unknown(&at), '!');
	assert_int_equal(slurm_format_next_unknown(&at), ' ');
	assert_int_equal(slurm_format_next_unknown(&at), 0);
	assert_int_equal(slurm_format_next_unknown(&at), -1);
}

static void ids_are_digits_and_tasks_of_arrays(void **state)
{
	static const char *const good[] = { "", "1", "12,,3", "5_1", "5_*",
		"5_[1,3-4],6" };
	static const char *const bad[] = { "x", "0", "1-3", "1.0", "1x", "5_", "5_x",
		"5_[1", "5_1x", "mine", "-1", "+1", " 1", "1 ", "5_[a]", "5_**",
		"1234567890123456789" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_null(slurm_find_bad_id(good[i]));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_non_null(slurm_find_bad_id(bad[i]));
	assert_int_equal(slurm_count_ids("12,,5_[1,3],"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_of_a_status_are_those_of_squeue),
		cmocka_unit_test(a_job_by_its_id_has_its_latest_end),
		cmocka_unit_test(each_reason_has_slurms_word),
		cmocka_unit_test(a_task_of_an_array_has_the_id_of_the_array),
		cmocka_unit_test(a_task_outlives_its_array_in_the_history),
		cmocka_unit_test(what_is_no_status_is_refused),
		cmocka_unit_test(a_format_has_widths_and_other_text),
		cmocka_unit_test(unknown_fields_are_found),
		cmocka_unit_test(ids_are_digits_and_tasks_of_arrays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
