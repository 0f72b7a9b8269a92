#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "cluster_sample.h"
#include "slurm_reason.h"

static struct cluster_jobs read_jobs(const char *lines)
{
	struct cluster_jobs jobs = CLUSTER_JOBS_NONE;
	char *text = strdup(lines);

	assert_non_null(text);
	assert_int_equal(cluster_jobs_read(text, SAMPLE_MARK, &jobs), 0);
	free(text);
	return jobs;
}

static void a_running_job_is_read(void **state)
{
	struct cluster_jobs jobs = read_jobs(SAMPLE_JOBS);
	const struct cluster_job *job = cluster_jobs_find(&jobs, 2);

	(void)state;
	assert_int_equal(jobs.count, 7);
	assert_non_null(job);
	assert_int_equal(job->state->phase, SLURM_RUNS);
	assert_int_equal(job->gpus, 3);
	assert_int_equal(job->nodes, 2);
	assert_int_equal(job->uid, 1000);
	assert_int_equal(job->limit_s, 86400);
	assert_int_equal(job->start_s, 1795533503);
	assert_int_equal(job->attempt, 1);
	assert_string_equal(job->user, "alice");
	assert_string_equal(job->node_list, "n[2-3]");
	assert_string_equal(job->name, "two");
	assert_string_equal(job->command, "");
	assert_null(cluster_jobs_find(&jobs, 99));
	cluster_jobs_release(&jobs);
}

static void a_limit_of_a_year_is_none(void **state)
{
	static const struct {
		const char *limit;
		int64_t seconds;
	} cases[] = { { "30", 30 }, { "1:00", 60 }, { "1:40:00", 6000 },
		{ "1-00:00:00", 86400 }, { "364-23:59:59", 365 * 86400 - 1 },
		{ "365-00:00:00", 0 }, { "UNLIMITED", 0 }, { "NOT_SET", 0 },
		{ "99999999999999999999-00:00:00", 0 } };
	char line[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cluster_jobs jobs;

		(void)snprintf(line, sizeof(line),
			SAMPLE_JOB("3", "RUNNING", "1", "", "1", "%s", "n1", "3", "N/A",
				"0", "(null)", "None") "\n",
			cases[i].limit);
		jobs = read_jobs(line);
		assert_int_equal(jobs.list[0].limit_s, cases[i].seconds);
		cluster_jobs_release(&jobs);
	}
}

static void a_start_after_a_year_is_no_estimate(void **state)
{
	(void)state;
	assert_true(slurm_is_estimate(-5));
	assert_true(slurm_is_estimate(INT64_C(179) * 86400));
	assert_false(slurm_is_estimate(INT64_C(365) * 86400 - 100));
}

static void a_separator_in_the_name_ends_it(void **state)
{
	struct cluster_jobs jobs = read_jobs(SAMPLE_JOBS);
	const struct cluster_job *job = cluster_jobs_find(&jobs, 1);

	(void)state;
	assert_string_equal(job->name, "evil");
	assert_string_equal(job->command, "/home/alice/run.sh");
	cluster_jobs_release(&jobs);
}

static void a_dependency_is_read(void **state)
{
	struct cluster_jobs jobs = read_jobs(SAMPLE_JOBS);
	const struct cluster_job *job = cluster_jobs_find(&jobs, 8);

	(void)state;
	assert_string_equal(job->after, "3");
	assert_string_equal(job->after_ok, "2");
	assert_int_equal(job->attempt, 2);
	assert_false(job->is_singleton);
	cluster_jobs_release(&jobs);
}

static void more_ids_than_fit_are_left_out(void **state)
{
	char after[2048] = "afterany:1:2_*", line[4096];
	struct cluster_jobs jobs;

	(void)state;
	for (int i = 0; i < 100; i++)
		(void)snprintf(after + strlen(after), sizeof(after) - strlen(after),
			":%d", 100000 + i);
	(void)snprintf(line, sizeof(line),
		SAMPLE_JOB("3", "PENDING", "1", "", "N/A", "NONE", "", "3", "N/A", "0",
			"singleton(unfulfilled),%s(unfulfilled)", "Dependency") "\n",
		after);
	jobs = read_jobs(line);
	assert_int_equal(jobs.count, 1);
	assert_memory_equal(jobs.list[0].after, "1,2,100000,100001,", 18);
	assert_true(strlen(jobs.list[0].after) < sizeof(jobs.list[0].after));
	assert_string_equal(jobs.list[0].after_ok, "");
	assert_true(jobs.list[0].is_singleton);
	cluster_jobs_release(&jobs);
}

static void tasks_of_an_array_that_wait_are_counted(void **state)
{
	static const struct {
		const char *tasks;
		unsigned count;
	} cases[] = { { "3-4%1", 2 }, { "1,3-9:2,12", 6 }, { "0-9999", 10000 },
		{ "5", 1 }, { "1-100,200-...", 101 }, { "N/A", 0 } };
	char line[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cluster_jobs jobs;

		(void)snprintf(line, sizeof(line),
			SAMPLE_JOB("7", "PENDING", "1", "", "N/A", "NONE", "", "7", "%s",
				"0", "(null)", "Priority") "\n",
			cases[i].tasks);
		jobs = read_jobs(line);
		assert_int_equal(jobs.count, 1);
		assert_int_equal(jobs.list[0].array_tasks, cases[i].count);
		cluster_jobs_release(&jobs);
	}
}

static void a_task_that_runs_has_an_id_of_its_own(void **state)
{
	struct cluster_jobs jobs = read_jobs(SAMPLE_JOBS);
	const struct cluster_job *job = cluster_jobs_find(&jobs, 10);

	(void)state;
	assert_int_equal(job->array_id, 7);
	assert_int_equal(job->array_tasks, 0);
	cluster_jobs_release(&jobs);
}

/* What a user writes into the name of a job is no job. */
static void a_line_feed_in_the_command_cuts_it(void **state)
{
	struct cluster_jobs jobs = read_jobs(SAMPLE_JOB("3", "PENDING", "1", "", "N/A",
		"NONE", "", "3", "N/A", "0", "(null)",
		"Priority") "name" S "gpulease:0123 mine" S
			    "/dev/stdin /logs 0123 /engine -- sh -c a\nb" S "\n");

	(void)state;
	assert_int_equal(jobs.count, 1);
	assert_string_equal(jobs.list[0].name, "name");
	assert_string_equal(jobs.list[0].command, "sh -c a");
	cluster_jobs_release(&jobs);
}

static void lines_without_the_mark_are_skipped(void **state)
{
	struct cluster_jobs jobs = read_jobs(SAMPLE_JOB("3", "PENDING", "1", "", "N/A",
		"NONE", "", "3", "N/A", "0", "(null)",
		"Priority") "na\n2" S "guess" S
			    "COMPLETED" S S S S S S S S S S S S S S S S S S S S S S S S S
			    "x\n"
			    "99" S "RUNNING\n\n" S SAMPLE_MARK S
			    "\n" SAMPLE_ID("4") "RUNNING\n");

	(void)state;
	assert_int_equal(jobs.count, 1);
	assert_int_equal(jobs.list[0].id, 3);
	assert_string_equal(jobs.list[0].name, "na");
	cluster_jobs_release(&jobs);
}

static void a_job_that_waits_asks_for_gpus_in_several_ways(void **state)
{
	static const struct {
		const char *job, *node, *socket, *task;
		unsigned gpus;
	} cases[] = {
		{ "gres:gpu:4", "N/A", "N/A", "N/A", 4 },
		{ "N/A", "gres:gpu:h100:2", "N/A", "N/A", 6 },
		{ "N/A", "N/A", "gres/gpu:1", "N/A", 3 },
		{ "N/A", "N/A", "N/A", "gres:gpu:1", 6 },
		{ "N/A", "N/A", "N/A", "N/A", 0 },
	};
	char line[1024];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cluster_jobs jobs;

		(void)snprintf(line, sizeof(line),
			SAMPLE_ID("3") "PENDING" S "0" S "0" S "root" S "main" S "3" S
				       "cpu=1,billing=1" S "%s" S "%s" S "%s" S "%s" S
				       "6" S "1" S "1" S "N/A" S "N/A" S "NONE" S S "3" S
				       "N/A" S "0" S "(null)" S "None" S S S S "\n",
			cases[i].job, cases[i].node, cases[i].socket, cases[i].task);
		jobs = read_jobs(line);
		assert_int_equal(jobs.list[0].gpus, cases[i].gpus);
		cluster_jobs_release(&jobs);
	}
}

static void reasons_have_words_and_kinds(void **state)
{
	static const struct {
		const char *reason, *kind, *words;
		bool is_for_ever;
	} cases[] = {
		{ "Priority", "behind", "other jobs come first", false },
		{ "ReqNodeNotAvail, UnavailableNodes:n[1-4]", "gpu",
			"a node that it needs is down or reserved", false },
		{ "ReqNodeNotAvail,_UnavailableNodes:n1", "gpu",
			"a node that it needs is down or reserved", false },
		{ "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher "
		  "priority partitions",
			"gpu", "nodes that it needs are down, drained or reserved",
			false },
		{ "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_"
		  "priority_partitions",
			"gpu", "nodes that it needs are down, drained or reserved",
			false },
		{ "launch failed requeued held", "held",
			"is held, because its node could not start it", false },
		{ "launch_failed_requeued_held", "held",
			"is held, because its node could not start it", false },
		{ "PartitionNodeLimit", "limit",
			"asks for more nodes than its partition gives a job now", false },
		{ "DependencyNeverSatisfied", "held",
			"a job that it waits for has ended otherwise", true },
		{ "QOSMaxGRESPerUser", "limit",
			"you have as many GPUs as your QOS allows", false },
		{ "QOSMaxMemoryPerJob", "limit",
			"asks for more than a job of its QOS may have", true },
		{ "QOSMaxWallDurationPerJobLimit", "limit",
			"asks for more than a job of its QOS may have", true },
		{ "QOSMinGRES", "limit", "asks for less than its QOS demands", true },
		{ "AssocGrpBillingMinutes", "limit",
			"the time of your account is used up", false },
		{ "MaxCpuPerAccount", "limit", "your account has as much as it may",
			false },
		{ "AssocGrpCpuLimit", "limit", "your account has as much as it may",
			false },
		{ "SomethingNew", "limit", "Slurm says SomethingNew", false },
		{ "", "limit", "Slurm says nothing", false },
		{ "Prio", "limit", "Slurm says Prio", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct slurm_reason *reason = slurm_reason_find(cases[i].reason);
		char words[320];
		struct text text = TEXT_ON(words);

		slurm_reason_add(cases[i].reason, &text);
		assert_string_equal(words, cases[i].words);
		assert_string_equal(reason->kind, cases[i].kind);
		assert_int_equal(reason->is_for_ever, cases[i].is_for_ever);
	}
}

static void states_have_phases(void **state)
{
	static const struct {
		const char *state;
		enum slurm_phase phase;
		int wait_status, status;
	} cases[] = {
		{ "PENDING", SLURM_WAITS, 0, 0 },
		{ "REQUEUED", SLURM_WAITS, 0, 0 },
		{ "LAUNCH_FAILED", SLURM_WAITS, 0, 0 },
		{ "COMPLETING", SLURM_RUNS, 0, 0 },
		{ "COMPLETED", SLURM_ENDED, 0, 0 },
		{ "FAILED", SLURM_ENDED, 3 << 8, 3 },
		{ "FAILED", SLURM_ENDED, 9, 137 },
		{ "CANCELLED by 1000", SLURM_ENDED, 0, 143 },
		{ "CANCELLED+", SLURM_ENDED, 0, 143 },
		{ "TIMEOUT", SLURM_ENDED, 15, 124 },
		{ "NODE_FAIL", SLURM_ENDED, 0, 125 },
		{ "OUT_OF_MEMORY", SLURM_ENDED, 125 << 8, 137 },
		{ "NEVER_HEARD_OF", SLURM_RUNS, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct slurm_state *found = slurm_state_find(cases[i].state);

		assert_int_equal(found->phase, cases[i].phase);
		assert_int_equal(
			slurm_state_status(found, cases[i].wait_status), cases[i].status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_running_job_is_read),
		cmocka_unit_test(a_limit_of_a_year_is_none),
		cmocka_unit_test(a_start_after_a_year_is_no_estimate),
		cmocka_unit_test(a_separator_in_the_name_ends_it),
		cmocka_unit_test(a_dependency_is_read),
		cmocka_unit_test(more_ids_than_fit_are_left_out),
		cmocka_unit_test(tasks_of_an_array_that_wait_are_counted),
		cmocka_unit_test(a_task_that_runs_has_an_id_of_its_own),
		cmocka_unit_test(a_line_feed_in_the_command_cuts_it),
		cmocka_unit_test(lines_without_the_mark_are_skipped),
		cmocka_unit_test(a_job_that_waits_asks_for_gpus_in_several_ways),
		cmocka_unit_test(reasons_have_words_and_kinds),
		cmocka_unit_test(states_have_phases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
