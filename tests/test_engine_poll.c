#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clock.h"
#include "exitcodes.h"
#include "fdio.h"
#include "poll_rows.h"
#include "poll_share.h"
#include "scratch.h"

/* A field of squeue or sacct. */
#define S "\x1f"
#define ROW(id, state, status, uid, reason) \
	TASK(id, state, status, uid, reason, "7", "N/A")
/* A row of the task @task of the array @array. */
#define TASK(id, state, status, uid, reason, array, task)                              \
	id S state S status S uid S "1000" S "1010" S "1020" S reason S array S task S \
				    "\n"

enum { ME = 1000, NOW_MS = 1000 * 1000 };

static struct engine_poll polled;

static int set_up(void **state)
{
	(void)state;
	polled = ENGINE_POLL_NONE;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	engine_poll_release(&polled);
	return 0;
}

static struct polled_job *add(uint64_t id)
{
	assert_int_equal(engine_poll_add(&polled, id), 0);
	return engine_poll_find(&polled, id);
}

static void read_rows(const char *rows, int64_t now_ms)
{
	char *text = strdup(rows);

	assert_non_null(text);
	polled.has_changed = false;
	poll_rows_begin(&polled);
	poll_rows_squeue(&polled, text, ME, now_ms);
	free(text);
}

/* --- squeue ----------------------------------------------------------------------------- */

static void a_job_ends_with_its_status(void **state)
{
	static const struct {
		const char *row;
		int status;
	} cases[] = {
		{ ROW("7", "COMPLETED", "0", "1000", "None"), 0 },
		{ ROW("7", "FAILED", "1792", "1000", "NonZeroExitCode"), 7 },
		{ ROW("7", "FAILED", "9", "1000", "None"), 137 },
		{ ROW("7", "TIMEOUT", "0", "1000", "TimeLimit"), EXIT_GAVE_UP },
		{ ROW("7", "CANCELLED", "0", "1000", "None"), 143 },
		{ ROW("7", "CANCELLED", "0", "1000", "DependencyNeverSatisfied"),
			EXIT_GAVE_UP },
		/* slurmstepd could not open the log */
		{ ROW("7", "FAILED", "4021", "1000", "JobLaunchFailure"), EXIT_MISUSE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct polled_job *job = add(7);

		read_rows(cases[i].row, NOW_MS);
		assert_true(job->has_ended);
		assert_int_equal(job->status, cases[i].status);
		assert_int_equal(polled.left, 0);
		assert_true(polled.has_changed);
		engine_poll_release(&polled);
	}
}

static void a_job_that_goes_back_into_the_queue_has_not_ended(void **state)
{
	const struct polled_job *job = add(7);

	(void)state;
	read_rows(ROW("7", "REQUEUED", "0", "1000", "None"), NOW_MS);
	assert_false(job->has_ended);
	read_rows(ROW("7", "PREEMPTED", "0", "1000", "None"), NOW_MS);
	assert_false(job->has_ended);
	read_rows(ROW("7", "PENDING", "0", "1000", "Resources"), NOW_MS + 1000);
	assert_false(job->has_ended);
	/* the doubt begins anew */
	read_rows(ROW("7", "PREEMPTED", "0", "1000", "None"), NOW_MS + 20000);
	assert_false(job->has_ended);
	read_rows(ROW("7", "PREEMPTED", "0", "1000", "None"),
		NOW_MS + 20000 + POLL_DOUBT_MS);
	assert_true(job->has_ended);
}

static void a_state_of_a_later_version_is_no_end(void **state)
{
	const struct polled_job *job = add(7);

	(void)state;
	read_rows(ROW("7", "HIBERNATED", "0", "1000", "None"), NOW_MS);
	assert_false(job->has_ended);
}

static void the_row_of_another_job_changes_nothing(void **state)
{
	const struct polled_job *job = add(7);

	(void)state;
	read_rows(ROW("70", "COMPLETED", "0", "1000", "None") "7" S "COMPLETED\n"
							      "squeue: a warning\n",
		NOW_MS);
	assert_null(job->state);
	assert_false(job->is_seen);
	assert_false(polled.has_changed);
}

static void the_job_of_another_user_is_foreign(void **state)
{
	const struct polled_job *job = add(7);

	(void)state;
	read_rows(ROW("7", "RUNNING", "0", "1001", "None"), NOW_MS);
	assert_true(job->is_foreign);
	assert_int_equal(job->uid, 1001);
	assert_int_equal(job->submit_s, 1000);
}

static void only_news_is_a_change(void **state)
{
	(void)state;
	(void)add(7);
	read_rows(ROW("7", "PENDING", "0", "1000", "Priority"), NOW_MS);
	assert_true(polled.has_changed);
	read_rows(ROW("7", "PENDING", "0", "1000", "Priority"), NOW_MS);
	assert_false(polled.has_changed);
	read_rows(ROW("7", "PENDING", "0", "1000", "Resources"), NOW_MS);
	assert_true(polled.has_changed);
}

#define OF_7(id, state, status, task) TASK(id, state, status, "1000", "None", "7", task)

static void an_array_ends_with_its_last_task(void **state)
{
	const struct polled_job *job = add(7), *task;

	(void)state;
	task = add(8);
	job = engine_poll_find(&polled, 7);
	read_rows(OF_7("7", "PENDING", "0", "1-3%1") OF_7("8", "FAILED", "2304", "0"),
		NOW_MS);
	assert_false(job->has_ended);
	assert_true(task->has_ended);
	assert_int_equal(task->status, 9);
	/* its own task is over, and the first one is forgotten */
	read_rows(OF_7("9", "RUNNING", "0", "1") OF_7("7", "FAILED", "256", "3"), NOW_MS);
	assert_false(job->has_ended);
	read_rows(
		OF_7("9", "NODE_FAIL", "0", "1") OF_7("7", "FAILED", "256", "3"), NOW_MS);
	assert_false(job->has_ended);
	read_rows(OF_7("9", "COMPLETED", "0", "1"), NOW_MS + 1);
	assert_true(job->has_ended);
	assert_int_equal(job->status, 125);
}

static void the_tasks_of_an_array_are_seen(void **state)
{
	const struct polled_job *job = add(7);

	(void)state;
	read_rows(OF_7("8", "RUNNING", "0", "0"), NOW_MS);
	assert_true(job->is_seen);
	assert_string_equal(job->state->name, "RUNNING");
	/* an answer about other jobs changes nothing */
	poll_rows_squeue(&polled, (char[]){ "" }, ME, NOW_MS);
	assert_false(job->has_ended);
}

/* --- sacct ------------------------------------------------------------------------------ */

static void sacct_tells_the_end_of_a_forgotten_job(void **state)
{
	struct polled_job *job = add(7);
	/* the first is of an earlier job with the id */
	char rows[] = "7" S "COMPLETED" S "0:0" S "ada" S "900" S "901" S "902" S "n1\n"
		      "7" S "CANCELLED by 1000" S "0:15" S "ada" S "1000" S "1001" S
		      "1002" S "n1\n";

	(void)state;
	job->submit_s = 1000;
	job->gone_ms = NOW_MS;
	poll_rows_sacct(&polled, rows);
	assert_true(job->has_ended);
	assert_int_equal(job->status, 143);
	assert_int_equal(job->end_s, 1002);
}

static void sacct_tells_that_a_job_could_never_start(void **state)
{
	struct polled_job *dependent = add(7), *big = add(8);
	char rows[] = "7" S "CANCELLED" S "0:0" S "ada" S "1000" S "None" S "1002" S
		      "None assigned\n"
		      "8" S "FAILED" S "1:0" S "ada" S "1000" S "1002" S "1002" S
		      "None assigned\n";

	(void)state;
	dependent = engine_poll_find(&polled, 7);
	dependent->gone_ms = big->gone_ms = NOW_MS;
	poll_rows_sacct(&polled, rows);
	assert_int_equal(dependent->status, EXIT_GAVE_UP);
	assert_int_equal(big->status, EXIT_MISUSE);
	assert_non_null(strstr(big->words, "never started"));
}

static void an_earlier_job_with_the_id_does_not_count(void **state)
{
	struct polled_job *job = add(7);
	char rows[] = "7" S "COMPLETED" S "0:0" S "ada" S "900" S "901" S "902" S "n1\n";

	(void)state;
	job->submit_s = 1000;
	job->gone_ms = NOW_MS;
	poll_rows_sacct(&polled, rows);
	assert_false(job->has_ended);
}

static void sacct_lags_behind_a_job_that_squeue_knows(void **state)
{
	struct polled_job *job = add(7);
	char rows[] =
		"7" S "COMPLETED" S "0:0" S "ada" S "1000" S "1001" S "1002" S "n1\n";

	(void)state;
	read_rows(ROW("7", "RUNNING", "0", "1000", "None"), NOW_MS);
	poll_rows_sacct(&polled, rows);
	assert_false(job->has_ended);
}

static void without_sacct_the_record_has_the_status(void **state)
{
	struct polled_job *job = add(7), *other = add(8);

	(void)state;
	job = engine_poll_find(&polled, 7);
	poll_rows_give_up(&polled, job, 5);
	assert_int_equal(job->status, 5);
	assert_false(job->is_unknown);
	poll_rows_give_up(&polled, other, -1);
	assert_true(other->is_unknown);
	assert_int_equal(other->status, -1);
	assert_int_equal(polled.left, 0);
}

static void a_job_that_was_seen_is_not_unknown(void **state)
{
	struct polled_job *job = add(7);

	(void)state;
	read_rows(ROW("7", "RUNNING", "0", "1000", "None"), NOW_MS);
	poll_rows_give_up(&polled, job, -1);
	assert_true(job->has_ended);
	assert_false(job->is_unknown);
	assert_int_equal(job->status, -1);
}

/* --- the interval ------------------------------------------------------------------------ */

static void the_interval_grows_from_a_tenth_to_ten_seconds(void **state)
{
	struct polled_job *job = add(7);

	(void)state;
	job->since_ms = NOW_MS;
	assert_int_equal(poll_interval_ms(&polled, NOW_MS), POLL_LEAST_MS);
	assert_int_equal(poll_interval_ms(&polled, NOW_MS + 3000), 1000);
	assert_int_equal(poll_interval_ms(&polled, NOW_MS + 3600 * 1000), POLL_MOST_MS);
	/* a new job is looked at often again */
	add(8)->since_ms = NOW_MS + 3600 * 1000;
	assert_int_equal(poll_interval_ms(&polled, NOW_MS + 3600 * 1000), POLL_LEAST_MS);
	polled.least_ms = 2000;
	assert_int_equal(poll_interval_ms(&polled, NOW_MS + 3600 * 1000), 2000);
}

static void jobs_that_have_ended_are_forgotten(void **state)
{
	(void)state;
	(void)add(7);
	(void)add(8);
	(void)add(8);
	assert_int_equal(polled.count, 2);
	read_rows(ROW("7", "COMPLETED", "0", "1000", "None"), NOW_MS);
	engine_poll_forget_ended(&polled);
	assert_int_equal(polled.count, 1);
	assert_int_equal(polled.jobs[0].id, 8);
	assert_int_equal(polled.left, 1);
}

/* --- the shared answer ---------------------------------------------------------------------- */

static void an_answer_is_shared(void **state)
{
	struct scratch *s = *state;
	char text[] = ROW("7", "RUNNING", "0", "1000", "None");
	struct poll_answer answer = { .at_ms = 5000, .text = text }, read;

	assert_int_equal(poll_share_read(s->path, &read), POLL_SHARE_NONE);
	poll_share_write(s->path, &answer);
	assert_int_equal(poll_share_read(s->path, &read), 0);
	assert_int_equal(read.at_ms, 5000);
	assert_false(read.is_silent);
	assert_string_equal(read.text, text);
	free(read.memory);
	answer = (struct poll_answer){ .at_ms = 6000, .is_silent = true };
	poll_share_write(s->path, &answer);
	assert_int_equal(poll_share_read(s->path, &read), 0);
	assert_true(read.is_silent);
	assert_string_equal(read.text, "");
	free(read.memory);
}

static void a_late_answer_does_not_replace_a_newer_one(void **state)
{
	enum { HOUR_MS = 3600 * 1000 };
	struct scratch *s = *state;
	struct poll_answer answer = { .at_ms = 2 * HOUR_MS }, read;

	poll_share_write(s->path, &answer);
	answer.at_ms = 2 * HOUR_MS - 1000;
	poll_share_write(s->path, &answer);
	assert_int_equal(poll_share_read(s->path, &read), 0);
	assert_int_equal(read.at_ms, 2 * HOUR_MS);
	free(read.memory);
	/* but one of a clock that went far ahead is replaced */
	answer.at_ms = HOUR_MS;
	poll_share_write(s->path, &answer);
	assert_int_equal(poll_share_read(s->path, &read), 0);
	assert_int_equal(read.at_ms, HOUR_MS);
	free(read.memory);
}

static void a_damaged_answer_is_none(void **state)
{
	static const char *const texts[] = { "x", "gpulease-poll-1 5000 answer",
		"gpulease-poll-1 5000\n", "gpulease-poll-1 x answer\n",
		"gpulease-poll-9 5000 answer\n", "\n\n" };
	struct scratch *s = *state;
	struct poll_answer read;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(fdio_replace(s->dirfd, "poll.answer", "t", texts[i],
					 strlen(texts[i]), 0600),
			0);
		assert_int_equal(poll_share_read(s->path, &read), POLL_SHARE_NONE);
	}
}

static void one_process_asks_at_a_time(void **state)
{
	struct scratch *s = *state;
	int64_t now_ms = clock_real_ms();
	autofd int first = -1, second = -1;

	assert_int_equal(poll_share_lock(s->path, now_ms, &first), 0);
	assert_true(first >= 0);
	assert_int_equal(poll_share_lock(s->path, now_ms, &second), POLL_SHARE_BUSY);
	assert_int_equal(second, -1);
	close_fd(&first);
	assert_int_equal(poll_share_lock(s->path, now_ms, &second), 0);
	assert_true(second >= 0);
}

static void a_stopped_holder_is_passed_over(void **state)
{
	struct scratch *s = *state;
	int64_t now_ms = clock_real_ms(),
		later_ms = now_ms + POLL_SHARE_STOPPED_MS + 2000;
	autofd int first = -1, second = -1, third = -1;

	assert_int_equal(poll_share_lock(s->path, now_ms, &first), 0);
	assert_int_equal(poll_share_lock(s->path, later_ms, &second), 0);
	assert_true(second >= 0);
	/* the next lock is held by a process that works */
	assert_int_equal(poll_share_lock(s->path, now_ms, &third), POLL_SHARE_BUSY);
}

static void without_a_folder_a_process_asks_by_itself(void **state)
{
	int fd = 0;

	(void)state;
	assert_int_equal(poll_share_lock("/proc/nonexistent", 0, &fd), 0);
	assert_int_equal(fd, -1);
}

#define POLL_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POLL_TEST(a_job_ends_with_its_status),
		POLL_TEST(a_job_that_goes_back_into_the_queue_has_not_ended),
		POLL_TEST(a_state_of_a_later_version_is_no_end),
		POLL_TEST(the_row_of_another_job_changes_nothing),
		POLL_TEST(the_job_of_another_user_is_foreign),
		POLL_TEST(only_news_is_a_change),
		POLL_TEST(sacct_tells_the_end_of_a_forgotten_job),
		POLL_TEST(an_array_ends_with_its_last_task),
		POLL_TEST(the_tasks_of_an_array_are_seen),
		POLL_TEST(sacct_tells_that_a_job_could_never_start),
		POLL_TEST(an_earlier_job_with_the_id_does_not_count),
		POLL_TEST(sacct_lags_behind_a_job_that_squeue_knows),
		POLL_TEST(without_sacct_the_record_has_the_status),
		POLL_TEST(a_job_that_was_seen_is_not_unknown),
		POLL_TEST(the_interval_grows_from_a_tenth_to_ten_seconds),
		POLL_TEST(jobs_that_have_ended_are_forgotten),
		SCRATCH_TEST(an_answer_is_shared),
		SCRATCH_TEST(a_late_answer_does_not_replace_a_newer_one),
		SCRATCH_TEST(a_damaged_answer_is_none),
		SCRATCH_TEST(one_process_asks_at_a_time),
		SCRATCH_TEST(a_stopped_holder_is_passed_over),
		SCRATCH_TEST(without_a_folder_a_process_asks_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
