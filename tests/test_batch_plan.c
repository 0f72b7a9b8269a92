/* Which job of a batch is next. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "../gpulease/batch_plan.h"

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

/* The next line of the file; its job. */
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

/* The file has those lines now; whether somebody who waits has to come later than before. */
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

/* The number of the job that @step is for next; 0: BATCH_STEP_WAIT. */
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
	job(5)->state = BATCH_NEW; /* sent back: it is behind what is known */
	batch_plan_again(&is.plan);
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

static void who_comes_after_others_lets_those_behind_pass(void **state)
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
	end(3, BATCH_BY_LIMIT, 124); /* however it has ended */
	assert_next(BATCH_STEP_WAIT, 0);
	end(4, BATCH_NOT_RUN, 125);
	assert_next(BATCH_STEP_START, 1);
}

static void after_ok_wants_a_good_end(void **state)
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
		{ BATCH_NOT_RUN, 0, true, true }, /* an equal one was done before */
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

static void names_are_whole_words(void **state)
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

static void a_name_too_long_for_any_job_is_nobodys(void **state)
{
	static char name[2 * BATCH_NAME_MAX];

	(void)state;
	memset(name, 'x', sizeof(name) - 1);
	LINE(.after = name);
	PLAIN; /* whose name is "" */
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

static void with_once_what_was_done_is_not_done_again(void **state)
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
	assert_next(BATCH_STEP_WAIT, 0); /* the third: it may become so */
	end(1, BATCH_ITSELF, 1);
	assert_next(BATCH_STEP_START, 3);
	end(2, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_START, 3);
	end(1, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_DROP, 3);
}

static void without_it_equal_lines_are_jobs_of_their_own(void **state)
{
	const struct batch_attributes none = { .gpus = 1 };

	(void)state;
	add(7, &none);
	add(7, &none);
	begin();
	end(1, BATCH_ITSELF, 0);
	assert_next(BATCH_STEP_START, 2);
}

static void who_waits_before_an_earlier_one_is_recalled(void **state)
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

static void a_new_line_before_them_has_all_behind_it_recalled(void **state)
{
	(void)state;
	PLAIN;
	LINE(.after = "nobody");
	PLAIN;
	PLAIN;
	begin();
	job(1)->state = BATCH_RUNNING; /* who runs is past that */
	queue(3, 11);
	queue(4, 0); /* it has no ticket yet */
	assert_null(batch_plan_find_early(&is.plan));
	job(1)->state = BATCH_NEW;
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(3));
	job(3)->is_recalled = true;
	assert_null(batch_plan_find_early(&is.plan));
}

static void who_waits_behind_one_that_comes_again_is_recalled(void **state)
{
	(void)state;
	PLAIN;
	PLAIN;
	begin();
	queue(1, 11);
	queue(2, 12);
	job(1)->is_recalled = true; /* edited */
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(2));
	is.lines[0].attributes.is_cancelled = true; /* it does not come again */
	assert_null(batch_plan_find_early(&is.plan));
}

static void only_a_new_order_of_those_who_wait_is_one(void **state)
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
		{ "a new one behind all", { 1, 2, 3, 4, 5, 6 }, 6, false },
		{ "a new one at the top", { 6, 1, 2, 3, 4, 5 }, 6, true },
		{ "a new one behind those who wait", { 1, 2, 3, 4, 6, 5 }, 6, false },
		{ "who waits is moved up", { 1, 2, 4, 3, 5 }, 5, true },
		{ "who runs is moved down", { 1, 3, 4, 5, 2 }, 5, false },
		{ "who is done is moved", { 3, 4, 5, 1, 2 }, 5, false },
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

static void a_priority_moves_who_waits(void **state)
{
	static const uint64_t order[] = { 1, 2 };

	(void)state;
	PLAIN;
	PLAIN;
	assert_false(is_moved(order, 2));
	queue(1, 11);
	queue(2, 12);
	is.lines[0].attributes.priority = 1; /* it is first as it is */
	assert_false(is_moved(order, 2));
	is.lines[1].attributes.priority = 2;
	assert_true(is_moved(order, 2));
	assert_ptr_equal(batch_plan_find_early(&is.plan), job(1));
}

static void a_name_is_of_lines_that_are_there_before_others(void **state)
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
	assert_true(batch_plan_is_free(&is.plan, job(3)));
	assert_next(BATCH_STEP_START, 3);
	job(2)->line = NULL; /* now nobody else has it */
	assert_false(is_moved(last, 1));
	assert_false(batch_plan_is_free(&is.plan, job(3)));
	assert_next(BATCH_STEP_GIVE_UP, 3);
}

static void nobody_is_started_beside_a_process_of_his(void **state)
{
	(void)state;
	PLAIN;
	PLAIN;
	begin();
	job(1)->pid = 7; /* told of its end; not waited for */
	assert_next(BATCH_STEP_START, 2);
	job(2)->state = BATCH_RUNNING;
	assert_next(BATCH_STEP_WAIT, 0);
	assert_null(batch_plan_find_stuck(&is.plan));
	job(1)->pid = 0;
	assert_next(BATCH_STEP_START, 1);
}

static void a_plan_of_nothing_is_one(void **state)
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
		TEST(who_comes_after_others_lets_those_behind_pass),
		TEST(after_ok_wants_a_good_end),
		TEST(names_are_whole_words),
		TEST(a_name_too_long_for_any_job_is_nobodys),
		TEST(jobs_that_wait_for_each_other_are_stuck),
		TEST(with_once_what_was_done_is_not_done_again),
		TEST(without_it_equal_lines_are_jobs_of_their_own),
		TEST(who_waits_before_an_earlier_one_is_recalled),
		TEST(a_new_line_before_them_has_all_behind_it_recalled),
		TEST(who_waits_behind_one_that_comes_again_is_recalled),
		TEST(only_a_new_order_of_those_who_wait_is_one),
		TEST(a_priority_moves_who_waits),
		TEST(a_name_is_of_lines_that_are_there_before_others),
		TEST(nobody_is_started_beside_a_process_of_his),
		TEST(a_plan_of_nothing_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
