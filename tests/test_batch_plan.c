/* The plan of a batch: which job is next. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "batch_plan.h"

enum { MOST = 8 };

/* A file of lines, and its plan. */
static struct {
	struct batch_line lines[MOST];
	uint64_t order[MOST];
	struct batch_jobs jobs;
	struct batch_plan plan;
} is;

static int forget_all(void **state)
{
	(void)state;
	batch_plan_release(&is.plan);
	batch_jobs_release(&is.jobs);
	memset(&is, 0, sizeof(is));
	is.plan = BATCH_PLAN_NONE;
	is.jobs = BATCH_JOBS_NONE;
	return 0;
}

/* Adds a line to the file; returns its job. */
static struct batch_job *add(uint64_t key, const struct batch_attributes *attributes)
{
	size_t at = is.jobs.count;
	struct batch_job *job = batch_jobs_add(
		&is.jobs, key, attributes->name ? attributes->name : "", "true");

	assert_non_null(job);
	is.lines[at] = (struct batch_line){ .key = key, .attributes = *attributes };
	is.order[at] = job->number;
	for (size_t i = 0; i <= at; i++)
		if (is.jobs.all[i].line || i == at)
			is.jobs.all[i].line = &is.lines[i];
	return job;
}

#define LINE(...) add(is.jobs.count + 100, &(struct batch_attributes){ __VA_ARGS__ })
#define PLAIN LINE(.gpus = 1)

static void begin(void)
{
	assert_int_equal(
		batch_plan_begin(&is.plan, &is.jobs, is.order, is.jobs.count), 0);
}

/* Plans for these lines; returns whether a waiting job has to come later than before. */
static bool is_moved(const uint64_t *order, size_t count)
{
	assert_int_equal(batch_plan_begin(&is.plan, &is.jobs, order, count), 0);
	return is.plan.is_reordered;
}

static struct batch_job *job(uint64_t number)
{
	return batch_jobs_find(&is.jobs, number);
}

static void end(uint64_t number, enum batch_cause cause, int status)
{
	job(number)->state = BATCH_ENDED;
	job(number)->cause = cause;
	job(number)->status = status;
}

static void queue(uint64_t number, uint64_t ticket)
{
	job(number)->state = BATCH_IN_QUEUE;
	job(number)->ticket = ticket;
}

/* Checks that the next step is @step, for job @number; 0: for none. */
static void check_next(
	bool may_start, enum batch_step step, uint64_t number, const char *file, int line)
{
	struct batch_job *next = NULL;
	uint64_t other = 0;
	enum batch_step got = batch_plan_next(&is.plan, may_start, &next, &other);

	if (got != step || (next ? next->number : 0) != number)
		_fail(file, line);
}

#define assert_next(step, number) check_next(true, step, number, __FILE__, __LINE__)
#define assert_next_if_full(step, number) \
	check_next(false, step, number, __FILE__, __LINE__)

static void jobs_come_in_the_order_of_the_file(void **state)
{
	(void)state;
	PLAIN;
	PLAIN;
	PLAIN;
	begin();
	assert_next(BATCH_STEP_START, 1);
	job(1)->state = BATCH_IN_QUEUE;
	assert_next(BATCH_STEP_START, 2);
	job(2)->state = BATCH_RUNNING;
	assert_next_if_full(BATCH_STEP_WAIT, 0);
	assert_next(BATCH_STEP_START, 3);
	end(3, BATCH_ITSELF, 1);
	assert_next(BATCH_STEP_WAIT, 0);
}

static void higher_priority_comes_first(void **state)
{
	static const uint64_t expected[] = { 3, 5, 1, 4, 2 };

	(void)state;
	PLAIN;
	LINE(.priority = -1);
	LINE(.priority = INT64_MAX);
	PLAIN;
	LINE(.priority = 7);
	begin();
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_next(BATCH_STEP_START, expected[i]);
		job(expected[i])->state = BATCH_RUNNING;
	}
	job(5)->state = BATCH_NEW; /* new again: the plan has passed it already */
	batch_plan_rescan(&is.plan);
	assert_next(BATCH_STEP_START, 5);
}

static void the_word_cancel_needs_no_room(void **state)
{
	(void)state;
	LINE(.is_cancelled = true);
	PLAIN;
	begin();
	assert_next_if_full(BATCH_STEP_CANCEL, 1);
	end(1, BATCH_BY_CANCEL, 143);
	assert_next(BATCH_STEP_START, 2);
}

static void a_job_that_comes_after_others_lets_later_jobs_pass(void **state)
{
	(void)state;
	LINE(.after = "prep,4");
	LINE(.name = "prep");
	LINE(.name = "prep"); /* both of them */
	PLAIN;
	begin();
	for (uint64_t number = 2; number <= 4; number++) {
		assert_next(BATCH_STEP_START, number);
		job(number)->state = BATCH_RUNNING;
	}
	assert_next(BATCH_STEP_WAIT, 0);
	end(2, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_WAIT, 0);
	end(3, BATCH_BY_LIMIT, 124); /* with any end */
	assert_next(BATCH_STEP_WAIT, 0);
	end(4, BATCH_NOT_RUN, 125);
	assert_next(BATCH_STEP_START, 1);
}

static void after_ok_needs_a_success(void **state)
{
	static const struct {
		enum batch_cause cause;
		int status;
		bool is_dropped, is_good;
	} cases[] = {
		{ BATCH_ITSELF, 0, false, true }, { BATCH_ITSELF, 1, false, false },
		{ BATCH_BY_OOM, 1, false, false }, { BATCH_BY_LIMIT, 0, false, false },
		{ BATCH_BY_CANCEL, 143, false, false },
		{ BATCH_NOT_RUN, 125, false, false },
		{ BATCH_IS_LOST, 137, false, false },
		{ BATCH_NOT_RUN, 0, true, true }, /* an equal job was done before */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct batch_job *next = NULL;
		uint64_t other = 0;

		forget_all(state);
		LINE(.after_ok = "data");
		LINE(.name = "data");
		begin();
		end(2, cases[i].cause, cases[i].status);
		job(2)->is_dropped = cases[i].is_dropped;
		if (batch_plan_next(&is.plan, true, &next, &other) !=
			(cases[i].is_good ? BATCH_STEP_START : BATCH_STEP_GIVE_UP))
			fail_msg("case %zu", i);
		assert_int_equal(next->number, 1);
		assert_int_equal(other, cases[i].is_good ? 0 : 2);
	}
}

static void names_match_as_a_whole(void **state)
{
	(void)state;
	LINE(.after = "a");
	LINE(.name = "ab");
	LINE(.name = "b");
	LINE(.name = "");
	begin();
	for (uint64_t number = 2; number <= 4; number++)
		end(number, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_WAIT, 0);
	assert_ptr_equal(batch_plan_find_stuck(&is.plan), job(1));
}

static void a_name_too_long_for_any_job_matches_none(void **state)
{
	static char name[2 * BATCH_NAME_MAX];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	LINE(.after = name);
	PLAIN; /* its name is "" */
	begin();
	end(2, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_WAIT, 0);
}

static void jobs_that_wait_for_each_other_are_stuck(void **state)
{
	(void)state;
	LINE(.name = "a", .after = "b");
	LINE(.name = "b", .after = "a");
	PLAIN;
	begin();
	end(3, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_WAIT, 0);
	assert_ptr_equal(batch_plan_find_stuck(&is.plan), job(1));
	end(1, BATCH_NOT_RUN, 124);
	assert_next(BATCH_STEP_START, 2);
	end(2, BATCH_ITSELF, 0);
	assert_null(batch_plan_find_stuck(&is.plan));
}

static void with_once_an_equal_job_is_not_run_again(void **state)
{
	const struct batch_attributes none = { .gpus = 1 };

	(void)state;
	is.plan.once = true;
	add(7, &none);
	add(8, &none);
	add(7, &none);
	add(9, &none)->line = NULL; /* not in the file any more */
	add(9, &none);
	is.order[3] = 5;
	assert_int_equal(batch_plan_begin(&is.plan, &is.jobs, is.order, 4), 0);
	end(4, BATCH_ITSELF, 0);
	job(1)->state = job(2)->state = BATCH_RUNNING;
	assert_next(BATCH_STEP_DROP, 5);
	job(5)->state = BATCH_ENDED;
	assert_next(BATCH_STEP_WAIT, 0); /* the third job may still be finished */
	end(1, BATCH_ITSELF, 1);
	assert_next(BATCH_STEP_START, 3);
	end(2, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_START, 3);
	end(1, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_DROP, 3);
}

static void with_once_jobs_of_other_environments_are_not_equal(void **state)
{
	const struct batch_attributes none = { .gpus = 1 };

	(void)state;
	is.plan.once = true;
	for (uint64_t i = 1; i <= 3; i++)
		add(7, &none)->environment = i % 3;
	begin();
	end(1, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_START, 2);
	end(2, BATCH_ITSELF, 0);
	/* where one of them is unknown, they count as equal */
	assert_next(BATCH_STEP_DROP, 3);
}

static void without_once_equal_lines_are_separate_jobs(void **state)
{
	const struct batch_attributes none = { .gpus = 1 };

	(void)state;
	add(7, &none);
	add(7, &none);
	begin();
	end(1, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_START, 2);
}

static void a_job_waiting_before_an_earlier_one_is_recalled(void **state)
{
	(void)state;
	PLAIN;
	PLAIN;
	PLAIN;
	PLAIN;
	begin();
	queue(1, 10);
	queue(2, 11);
	queue(3, 12);
	assert_null(batch_plan_find_early(&is.plan));
	is.order[0] = 3; /* the third line was moved to the top */
	is.order[1] = 1;
	is.order[2] = 2;
	begin();
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(1));
	job(1)->is_recalled = true;
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(2));
	job(2)->is_recalled = true;
	assert_null(batch_plan_find_early(&is.plan));
}

static void a_new_line_recalls_all_waiting_jobs_after_it(void **state)
{
	(void)state;
	PLAIN;
	LINE(.after = "nobody");
	PLAIN;
	PLAIN;
	begin();
	job(1)->state = BATCH_RUNNING; /* a running job is past that */
	queue(3, 11);
	queue(4, 0); /* it has no ticket yet */
	assert_null(batch_plan_find_early(&is.plan));
	job(1)->state = BATCH_NEW;
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(3));
	job(3)->is_recalled = true;
	assert_null(batch_plan_find_early(&is.plan));
}

static void a_job_waiting_after_one_that_queues_again_is_recalled(void **state)
{
	(void)state;
	PLAIN;
	PLAIN;
	begin();
	queue(1, 11);
	queue(2, 12);
	job(1)->is_recalled = true; /* edited */
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(2));
	is.lines[0].attributes.is_cancelled = true; /* it does not queue again */
	assert_null(batch_plan_find_early(&is.plan));
}

static void only_a_new_order_of_waiting_jobs_counts(void **state)
{
	static const struct {
		const char *why;
		uint64_t order[MOST];
		size_t count;
		bool is_moved;
	} cases[] = {
		{ "as it was", { 1, 2, 3, 4, 5 }, 5, false },
		{ "one is gone", { 1, 2, 4, 5 }, 4, false },
		{ "one that is done is gone", { 2, 3, 4, 5 }, 4, false },
		{ "a new one after all", { 1, 2, 3, 4, 5, 6 }, 6, false },
		{ "a new one at the top", { 6, 1, 2, 3, 4, 5 }, 6, true },
		{ "a new one after those that wait", { 1, 2, 3, 4, 6, 5 }, 6, false },
		{ "a waiting one is moved up", { 1, 2, 4, 3, 5 }, 5, true },
		{ "a running one is moved down", { 1, 3, 4, 5, 2 }, 5, false },
		{ "one that is done is moved", { 3, 4, 5, 1, 2 }, 5, false },
		{ "one that does not wait yet is moved up", { 1, 2, 5, 3, 4 }, 5, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)forget_all(state);
		for (size_t at = 0; at < 6; at++)
			PLAIN;
		assert_false(is_moved(cases[0].order, cases[0].count));
		end(1, BATCH_ITSELF, 0);
		job(2)->state = BATCH_RUNNING;
		/* the order of tickets does not matter: `after` may have been waited for */
		queue(3, 12);
		queue(4, 11);
		if (is_moved(cases[i].order, cases[i].count) != cases[i].is_moved)
			fail_msg("%s", cases[i].why);
	}
}

static void a_priority_moves_waiting_jobs(void **state)
{
	static const uint64_t order[] = { 1, 2 };

	(void)state;
	PLAIN;
	PLAIN;
	assert_false(is_moved(order, 2));
	queue(1, 11);
	queue(2, 12);
	is.lines[0].attributes.priority = 1; /* it is the first anyway */
	assert_false(is_moved(order, 2));
	is.lines[1].attributes.priority = 2;
	assert_true(is_moved(order, 2));
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(1));
}

static void a_name_means_lines_in_the_file_first(void **state)
{
	static const uint64_t both[] = { 2, 3 }, last[] = { 3 };

	(void)state;
	LINE(.name = "x");
	LINE(.name = "x");
	LINE(.after_ok = "x");
	end(1, BATCH_ITSELF, 1);
	job(1)->line = NULL;
	assert_false(is_moved(both, 2));
	assert_next(BATCH_STEP_START, 2);
	end(2, BATCH_ITSELF, 0);
	assert_true(batch_plan_is_unblocked(&is.plan, job(3)));
	assert_next(BATCH_STEP_START, 3);
	job(2)->line = NULL; /* now no other job has it */
	assert_false(is_moved(last, 1));
	assert_false(batch_plan_is_unblocked(&is.plan, job(3)));
	assert_next(BATCH_STEP_GIVE_UP, 3);
}

static void no_job_starts_before_its_last_process_is_reaped(void **state)
{
	(void)state;
	PLAIN;
	PLAIN;
	begin();
	job(1)->pid = 7; /* its end was reported; it is not reaped yet */
	assert_next(BATCH_STEP_START, 2);
	job(2)->state = BATCH_RUNNING;
	assert_next(BATCH_STEP_WAIT, 0);
	assert_null(batch_plan_find_stuck(&is.plan));
	job(1)->pid = 0;
	assert_next(BATCH_STEP_START, 1);
}

static void a_plan_may_be_empty(void **state)
{
	(void)state;
	begin();
	assert_next(BATCH_STEP_WAIT, 0);
	assert_null(batch_plan_find_early(&is.plan));
	assert_null(batch_plan_find_stuck(&is.plan));
	batch_plan_release(&is.plan);
	batch_plan_release(&is.plan);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, forget_all, forget_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(jobs_come_in_the_order_of_the_file),
		TEST(higher_priority_comes_first),
		TEST(the_word_cancel_needs_no_room),
		TEST(a_job_that_comes_after_others_lets_later_jobs_pass),
		TEST(after_ok_needs_a_success),
		TEST(names_match_as_a_whole),
		TEST(a_name_too_long_for_any_job_matches_none),
		TEST(jobs_that_wait_for_each_other_are_stuck),
		TEST(with_once_an_equal_job_is_not_run_again),
		TEST(with_once_jobs_of_other_environments_are_not_equal),
		TEST(without_once_equal_lines_are_separate_jobs),
		TEST(a_job_waiting_before_an_earlier_one_is_recalled),
		TEST(a_new_line_recalls_all_waiting_jobs_after_it),
		TEST(a_job_waiting_after_one_that_queues_again_is_recalled),
		TEST(only_a_new_order_of_waiting_jobs_counts),
		TEST(a_priority_moves_waiting_jobs),
		TEST(a_name_means_lines_in_the_file_first),
		TEST(no_job_starts_before_its_last_process_is_reaped),
		TEST(a_plan_may_be_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
