/* What srun prints, and what it means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>
#include <cmocka.h>

#include "engine_dry_run.h"
#include "srun_messages.h"

static void lines_are_told_apart(void **state)
{
	static const struct {
		const char *line;
		enum srun_line_kind kind;
		uint64_t job, step;
	} rows[] = {
		{ "srun: job 36 queued and waiting for resources", SRUN_QUEUED, 36, 0 },
		{ "srun: job 36 has been allocated resources", SRUN_ALLOCATED, 36, 0 },
		{ "srun: jobid 5: nodes(1):`n1', cpu counts: 1(x1)", SRUN_ALLOCATED, 5,
			0 },
		{ "srun: launching StepId=5.2 on host n1, 1 tasks: 0", SRUN_LAUNCHING, 5,
			2 },
		{ "srun: launch/slurm: _task_start: Node n1, 1 tasks started",
			SRUN_STARTED, 0, 0 },
		{ "srun: Node n1, 1 tasks started", SRUN_STARTED, 0, 0 },
		{ "srun: error: n1: task 0: Exited with exit code 7", SRUN_TASK, 0, 0 },
		{ "srun: error: n[1-2]: tasks 0-1,3: Killed", SRUN_TASK, 0, 0 },
		{ "srun: error: n1: task 0: Segmentation fault (core dumped)", SRUN_TASK,
			0, 0 },
		{ "srun: error: Node failure on n3", SRUN_ERROR, 0, 0 },
		{ "srun: error: Unable to allocate resources: Requested nodes are busy",
			SRUN_BUSY, 0, 0 },
		{ "srun: error: Unable to allocate resources: Requested node configuration is "
		  "not available",
			SRUN_ERROR, 0, 0 },
		{ "srun: error: n1: tasks are many", SRUN_ERROR, 0, 0 },
		{ "srun: fatal: no", SRUN_ERROR, 0, 0 },
		{ "srun: forcing job termination", SRUN_INFO, 0, 0 },
		{ "slurmstepd-n1: error: *** STEP 5.0 ON n1 CANCELLED AT 2026-11-24 ***",
			SRUN_CANCELLED, 0, 0 },
		{ "srun: Complete StepId=8.0+0 received", SRUN_CANCELLED, 0, 0 },
		{ "srun: Job step aborted: Waiting up to 12 seconds for job step to finish.",
			SRUN_CANCELLED, 0, 0 },
		{ "srun: Force Terminated JobId=8", SRUN_CANCELLED, 0, 0 },
		{ "slurmstepd: error: Detected 1 oom-kill event(s)", SRUN_ERROR, 0, 0 },
		{ "a line of a plugin", SRUN_OTHER, 0, 0 },
		{ "", SRUN_OTHER, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct srun_line line = srun_line_read(rows[i].line);

		assert_int_equal(line.kind, rows[i].kind);
		assert_int_equal(line.job, rows[i].job);
		assert_int_equal(line.step, rows[i].step);
	}
	assert_string_equal(srun_line_read("srun: error: n1: task 0: Killed").text,
		"n1: task 0: Killed");
}

static void only_whole_lines_of_slurm_are_removed(void **state)
{
	static const struct {
		const char *before, *after;
		bool begins, ends;
	} rows[] = {
		{ "a\nslurmstepd: error: *** JOB 1 ***\nb\n", "a\nb\n", true, true },
		{ "slurmstepd-n1: error: *** STEP 1.0 ***\n", "", true, true },
		/* the end of a line of the command, and one that is not complete */
		{ "slurmstepd: error: *** JOB 1 ***\n",
			"slurmstepd: error: *** JOB 1 ***\n", false, true },
		{ "slurmstepd: error: *** JOB", "slurmstepd: error: *** JOB", true,
			false },
		{ "slurmstepd: error: oom\n\n", "slurmstepd: error: oom\n\n", true,
			true },
		{ "10%", "10%", true, false },
		{ "", "", true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char bytes[128];
		bool begins = rows[i].begins;
		size_t size = strlen(rows[i].before);

		memcpy(bytes, rows[i].before, size + 1);
		bytes[srun_remove_ends(bytes, size, &begins)] = '\0';
		assert_string_equal(bytes, rows[i].after);
		assert_int_equal(begins, rows[i].ends);
	}
}

static void the_start_that_slurm_foresees_is_read(void **state)
{
	char nodes[16];
	int64_t start_s = 0;

	(void)state;
	assert_int_equal(
		engine_read_test_only("srun: Job 46 to start at 1795535566 using 1 "
				      "processors on nodes n[1-2] in partition main",
			&start_s, nodes, sizeof(nodes)),
		0);
	assert_int_equal(start_s, 1795535566);
	assert_string_equal(nodes, "n[1-2]");
	assert_int_equal(
		engine_read_test_only("Job 46 to start at 2026-11-24T15:52:46 using 1 "
				      "processors on nodes n1 in partition main",
			&start_s, nodes, sizeof(nodes)),
		0);
	assert_true(start_s > 1795400000 && start_s < 1795600000); /* any time zone */
	assert_int_equal(engine_read_test_only("allocation failure: no", &start_s, nodes,
				 sizeof(nodes)),
		-EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_told_apart),
		cmocka_unit_test(only_whole_lines_of_slurm_are_removed),
		cmocka_unit_test(the_start_that_slurm_foresees_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
