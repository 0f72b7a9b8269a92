#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <errno.h>
#include <cmocka.h>

#include "batch_jobs.h"

static struct batch_jobs jobs;

static int begin(void **state)
{
	(void)state;
	jobs = BATCH_JOBS_NONE;
	return 0;
}

static int end(void **state)
{
	(void)state;
	batch_jobs_release(&jobs);
	return 0;
}

/* Reads @line as an event and applies it. */
static int try(const char *line)
{
	struct batch_event event;

	if (batch_event_parse(line, strlen(line), &event) < 0)
		fail_msg("no event: %s", line);
	return batch_jobs_apply(&jobs, &event);
}

static void apply(const char *line)
{
	int r = try(line);

	if (r < 0)
		fail_msg("%s: %s", strerror(-r), line);
}

static struct batch_job *seen(uint64_t number)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_SEEN, number);
	struct batch_job *job;

	event.key = number * 100;
	text_copy(event.command, sizeof(event.command), "true");
	assert_int_equal(batch_jobs_apply(&jobs, &event), 0);
	job = batch_jobs_find(&jobs, number);
	assert_non_null(job);
	return job;
}

static void a_job_is_open_until_it_has_begun(void **state)
{
	struct batch_job *job;

	(void)state;
	apply("{\"event\": \"seen\", \"job\": 1, \"key\": \"0a\", \"environment\": \"b\"}");
	job = batch_jobs_find(&jobs, 1);
	assert_int_equal(job->environment, 11);
	assert_true(batch_is_open(job));
	apply("{\"event\": \"ended\", \"job\": 1, \"cause\": \"not-run\", \"status\": 125}");
	assert_true(batch_is_open(job));
	apply("{\"event\": \"started\", \"job\": 1, \"environment\": \"c\"}");
	assert_int_equal(job->environment, 12);
	assert_false(batch_is_open(job));
	apply("{\"event\": \"ended\", \"job\": 1, \"status\": 1}");
	assert_false(batch_is_open(job));
	apply("{\"event\": \"ended\", \"job\": 1, \"interrupted\": true}");
	assert_true(batch_is_open(job));
	/* an earlier version does not say where the job runs */
	apply("{\"event\": \"started\", \"job\": 1}");
	assert_true(batch_is_open(job));
}

static void a_job_gets_the_next_number(void **state)
{
	struct batch_job *job;

	(void)state;
	apply("{\"event\": \"seen\", \"job\": 1, \"key\": \"0a\", \"name\": \"n\", "
	      "\"command\": \"c d\"}");
	job = batch_jobs_find(&jobs, 1);
	assert_int_equal(job->number, 1);
	assert_int_equal(job->key, 10);
	assert_string_equal(job->name, "n");
	assert_string_equal(job->command, "c d");
	assert_int_equal(job->state, BATCH_NEW);
	assert_int_equal(job->fd, -1);
	assert_int_equal(job->busy_mean, -1);
	assert_int_equal(try("{\"event\": \"seen\", \"job\": 1}"), -EINVAL);
	assert_int_equal(try("{\"event\": \"seen\", \"job\": 3}"), -EINVAL);
	assert_int_equal(try("{\"event\": \"seen\"}"), -EINVAL);
	assert_int_equal(jobs.count, 1);
	assert_null(batch_jobs_find(&jobs, 0));
	assert_null(batch_jobs_find(&jobs, 2));
}

static void events_of_unknown_jobs_are_refused(void **state)
{
	(void)state;
	seen(1);
	assert_int_equal(try("{\"event\": \"started\", \"job\": 2}"), -ENOENT);
	assert_int_equal(try("{\"event\": \"ended\"}"), -ENOENT);
	assert_int_equal(try("{\"event\": \"note\", \"job\": 7}"), 0);
	assert_int_equal(try("{\"event\": \"summary\"}"), 0);
	assert_int_equal(try("{\"event\": \"of a later version\", \"job\": 9}"), 0);
}

static void a_list_replaces_the_last_one(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 4; i++)
		seen(i);
	apply("{\"event\": \"list\", \"jobs\": \"1-3\"}");
	apply("{\"event\": \"list\", \"jobs\": \"4,2\"}");
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(batch_jobs_find(&jobs, i)->is_in_list, i % 2 == 0);
	assert_int_equal(try("{\"event\": \"list\", \"jobs\": \"4-5\"}"), -ENOENT);
	apply("{\"event\": \"list\"}");
	for (uint64_t i = 1; i <= 4; i++)
		assert_false(batch_jobs_find(&jobs, i)->is_in_list);
}

static void a_job_waits_runs_and_ends(void **state)
{
	struct batch_job *job = seen(1);

	(void)state;
	apply("{\"event\": \"queued\", \"job\": 1, \"ticket\": 120}");
	assert_int_equal(job->state, BATCH_IN_QUEUE);
	assert_int_equal(job->ticket, 120);
	apply("{\"event\": \"waiting\", \"job\": 1, \"text\": \"no GPU\"}");
	assert_string_equal(job->reason, "no GPU");
	apply("{\"event\": \"started\", \"at\": 5000, \"job\": 1, \"ticket\": 120, "
	      "\"attempt\": 1, \"gpus\": \"0,3\", \"pid\": 4711, "
	      "\"token\": \"0123456789abcdef\", \"boot\": \"b\", \"declared_mib\": 10, "
	      "\"vram_mib\": 20, \"limit_ms\": 30, \"waited_ms\": 40}");
	assert_int_equal(job->state, BATCH_RUNNING);
	assert_null(job->reason);
	assert_int_equal(job->owner.pid, 4711);
	assert_string_equal(job->owner.token, "0123456789abcdef");
	assert_string_equal(job->boot, "b");
	assert_string_equal(job->gpus, "0,3");
	assert_int_equal(job->started_ms, 5000);
	assert_int_equal(job->attempt, 1);
	assert_int_equal(job->declared_mib, 10);
	assert_int_equal(job->vram_mib, 20);
	assert_int_equal(job->limit_ms, 30);
	assert_int_equal(job->waited_ms, 40);
	apply("{\"event\": \"memory\", \"job\": 1, \"used_mib\": 256, \"peak_mib\": 256}");
	apply("{\"event\": \"memory\", \"job\": 1, \"used_mib\": 7, \"peak_mib\": 200}");
	assert_int_equal(job->used_mib, 7);
	assert_int_equal(job->peak_mib, 256);
	assert_false(job->is_over);
	apply("{\"event\": \"excess\", \"job\": 1, \"used_mib\": 280, \"peak_mib\": 280}");
	assert_true(job->is_over);
	apply("{\"event\": \"memory\", \"job\": 1, \"used_mib\": 270, \"peak_mib\": 280}");
	assert_true(job->is_over);
	assert_int_equal(job->used_mib, 270);
	apply("{\"event\": \"ended\", \"at\": 9000, \"job\": 1, \"status\": 3, "
	      "\"ran_ms\": 4000, \"peak_mib\": 300, \"busy_mean\": 50, "
	      "\"text\": \"exit 3\"}");
	assert_int_equal(job->state, BATCH_ENDED);
	assert_int_equal(job->ended_ms, 9000);
	assert_int_equal(job->status, 3);
	assert_int_equal(job->ran_ms, 4000);
	assert_int_equal(job->peak_mib, 300);
	assert_false(job->spans_run);
	assert_int_equal(job->busy_mean, 50);
	assert_int_equal(job->busy_peak, -1);
	assert_string_equal(job->reason, "exit 3");
	assert_int_equal(try("{\"event\": \"attempt\", \"job\": 1}"), -EINVAL);
	assert_int_equal(
		try("{\"event\": \"waiting\", \"job\": 1, \"text\": \"x\"}"), -EINVAL);
	assert_string_equal(job->reason, "exit 3");
}

static void between_two_attempts_it_runs_without_a_gpu(void **state)
{
	struct batch_job *job = seen(1);

	(void)state;
	apply("{\"event\": \"started\", \"job\": 1, \"attempt\": 1, \"vram_mib\": 2000, "
	      "\"gpus\": \"0\"}");
	assert_false(job->is_between);
	apply("{\"event\": \"attempt\", \"job\": 1, \"cause\": \"oom\", \"status\": 1, "
	      "\"next_mib\": 2500}");
	assert_int_equal(job->state, BATCH_RUNNING);
	assert_true(job->is_between);
	assert_string_equal(job->gpus, "");
	assert_int_equal(job->cause, BATCH_BY_OOM);
	assert_int_equal(job->status, 1);
	assert_int_equal(job->oom_count, 1);
	assert_int_equal(job->fail_count, 0);
	assert_int_equal(job->vram_mib, 2500);
	apply("{\"event\": \"queued\", \"job\": 1, \"ticket\": 8}");
	assert_int_equal(job->state, BATCH_RUNNING);
	assert_int_equal(job->ticket, 8);
	apply("{\"event\": \"attempt\", \"job\": 1, \"status\": 1}");
	apply("{\"event\": \"attempt\", \"job\": 1, \"status\": 143, \"cause\": "
	      "\"preempted\"}");
	assert_int_equal(job->oom_count, 1);
	assert_int_equal(job->fail_count, 1);
	assert_int_equal(job->vram_mib, 2500);
	job->is_recalled = true;
	apply("{\"event\": \"started\", \"job\": 1, \"attempt\": 4, \"gpus\": \"1\"}");
	assert_false(job->is_between);
	assert_false(
		job->is_recalled); /* when the job waits again it may be recalled again */
	assert_string_equal(job->gpus, "1");
	assert_int_equal(job->cause, BATCH_ITSELF);
	apply("{\"event\": \"attempt\", \"job\": 1, \"status\": 1}");
	apply("{\"event\": \"ended\", \"job\": 1, \"status\": 1}");
	assert_false(job->is_between);
}

static void an_interrupted_job_is_new_again_and_keeps_what_it_has_learned(void **state)
{
	struct batch_job *job = seen(1);

	(void)state;
	apply("{\"event\": \"started\", \"job\": 1, \"ticket\": 9, \"pid\": 5, \"boot\": "
	      "\"b\", \"gpus\": \"1\", \"attempt\": 2, \"vram_mib\": 2000}");
	apply("{\"event\": \"attempt\", \"job\": 1, \"cause\": \"oom\", \"next_mib\": 2500}");
	apply("{\"event\": \"ended\", \"job\": 1, \"status\": 143, \"peak_mib\": 7, "
	      "\"text\": \"x\", \"interrupted\": true}");
	assert_int_equal(job->state, BATCH_NEW);
	assert_int_equal(job->ticket, 0);
	assert_int_equal(job->owner.pid, 0);
	assert_string_equal(job->boot, "");
	assert_string_equal(job->gpus, "");
	assert_int_equal(job->attempt, 0);
	assert_int_equal(job->status, 0);
	assert_int_equal(job->peak_mib, 0);
	assert_null(job->reason);
	assert_int_equal(job->vram_mib, 2500);
	assert_int_equal(job->oom_count, 1);
	assert_false(batch_is_finished(job) || batch_is_failed(job));
}

static void an_ended_job_may_start_again(void **state)
{
	struct batch_job *job = seen(1);

	(void)state;
	apply("{\"event\": \"ended\", \"at\": 7, \"job\": 1, \"status\": 9, \"cause\": "
	      "\"limit\", \"peak_mib\": 5, \"busy_mean\": 1, \"ran_ms\": 6}");
	job->is_from_earlier = true;
	apply("{\"event\": \"started\", \"job\": 1, \"attempt\": 1}");
	assert_int_equal(job->state, BATCH_RUNNING);
	assert_int_equal(job->status, 0);
	assert_int_equal(job->cause, BATCH_ITSELF);
	assert_int_equal(job->ended_ms, 0);
	assert_int_equal(job->ran_ms, 0);
	assert_int_equal(job->peak_mib, 0);
	assert_int_equal(job->busy_mean, -1);
	assert_false(job->is_from_earlier);
}

static void a_line_that_cancels_its_job_is_noted_by_the_end_and_by_the_runner(
	void **state)
{
	struct batch_job *job = seen(1);

	(void)state;
	apply("{\"event\": \"ended\", \"job\": 1, \"cause\": \"cancelled\"}");
	assert_false(job->is_by_line);
	apply("{\"event\": \"ended\", \"job\": 1, \"cause\": \"cancelled\", "
	      "\"by_line\": true}");
	assert_true(job->is_by_line);
	job->is_cancelling = true;
	apply("{\"event\": \"ended\", \"job\": 1, \"cause\": \"cancelled\"}");
	assert_true(job->is_by_line);
}

static void ends_count_by_their_cause(void **state)
{
	static const struct {
		enum batch_cause cause;
		int status;
		bool is_finished, is_failed;
	} cases[] = {
		{ BATCH_ITSELF, 0, true, false },
		{ BATCH_ITSELF, 1, false, true },
		{ BATCH_BY_OOM, 1, false, true },
		{ BATCH_BY_LIMIT, 124, false, true },
		{ BATCH_BY_LIMIT, 0, false, true },
		{ BATCH_BY_CANCEL, 143, false, true },
		{ BATCH_BY_PREEMPT, 143, false, true },
		{ BATCH_NOT_RUN, 125, false, true },
		{ BATCH_IS_LOST, 0, false, true },
	};
	struct batch_job *job = seen(1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		job->state = BATCH_ENDED;
		job->cause = cases[i].cause;
		job->status = cases[i].status;
		assert_int_equal(batch_is_finished(job), cases[i].is_finished);
		assert_int_equal(batch_is_failed(job), cases[i].is_failed);
		job->is_by_line = true;
		assert_int_equal(batch_is_failed(job),
			cases[i].is_failed && cases[i].cause != BATCH_BY_CANCEL);
		job->is_by_line = false;
		job->is_dropped = true;
		assert_false(batch_is_finished(job) || batch_is_failed(job));
		job->is_dropped = false;
		job->state = BATCH_RUNNING;
		assert_false(batch_is_finished(job) || batch_is_failed(job));
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_gets_the_next_number),
		TEST(a_job_is_open_until_it_has_begun),
		TEST(events_of_unknown_jobs_are_refused),
		TEST(a_list_replaces_the_last_one),
		TEST(a_job_waits_runs_and_ends),
		TEST(between_two_attempts_it_runs_without_a_gpu),
		TEST(an_interrupted_job_is_new_again_and_keeps_what_it_has_learned),
		TEST(an_ended_job_may_start_again),
		TEST(a_line_that_cancels_its_job_is_noted_by_the_end_and_by_the_runner),
		TEST(ends_count_by_their_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
