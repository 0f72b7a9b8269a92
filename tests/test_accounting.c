#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "show_accounting.h"
#include "json_valid.h"
#include "page.h"

enum { HOUR_MS = 3600 * 1000 };

static const int64_t BEGIN_MS = INT64_C(1700000000000);
static const struct table_style plain = { .width = 0 };

static struct ended_filter filter;
static struct accounting sums;

static int setup(void **state)
{
	(void)state;
	filter = (struct ended_filter){ .until_ms = INT64_MAX };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	accounting_release(&sums);
	return 0;
}

/* One GPU from @from to @to, in hours from the beginning. */
static struct history_end ran(uint64_t ticket, uint32_t uid, double from, double to)
{
	struct history_end end = { .ticket = ticket,
		.uid = uid,
		.gpu_count = 1,
		.since_ms = BEGIN_MS + (int64_t)(from * HOUR_MS),
		.gone_ms = BEGIN_MS + (int64_t)(to * HOUR_MS),
		.status = "0" };

	end.alive_ms = end.gone_ms;
	(void)snprintf(end.user, sizeof(end.user), "user%u", uid);
	return end;
}

/* Begins sums that end ten hours after the beginning. */
static void begin(void)
{
	accounting_release(&sums);
	accounting_init(&sums, &filter, BEGIN_MS + 10 * HOUR_MS);
	sums.gpus = 4;
}

static void add(struct history_end end)
{
	assert_int_equal(accounting_add(&sums, &end, false), 0);
}

static const struct accounting_row *row_of(uint32_t uid)
{
	for (size_t i = 0; i < sums.count; i++)
		if (sums.rows[i].uid == uid)
			return &sums.rows[i];
	fail_msg("no user %u", uid);
	return NULL;
}

/* GPU time in hundredths of hours. */
static void check_hours(const struct accounting_row *row, uint64_t least, uint64_t most)
{
	assert_int_equal(row->gpu_least_ms, least * HOUR_MS / 100);
	assert_int_equal(row->gpu_most_ms, most * HOUR_MS / 100);
}

/* --- GPU time ----------------------------------------------------------------------- */

static void gpu_time_is_gpus_times_time(void **state)
{
	struct history_end end = ran(1, 1, 0, 2);

	(void)state;
	begin();
	end.gpu_count = 3;
	add(end);
	check_hours(row_of(1), 600, 600);
	check_hours(&sums.total, 600, 600);
}

static void a_share_counts_as_its_part_and_memory_as_a_whole(void **state)
{
	struct history_end half = ran(1, 1, 0, 1), memory = ran(2, 2, 0, 1),
			   both = ran(3, 3, 0, 1), none = ran(4, 4, 0, 1);

	(void)state;
	begin();
	half.share_percent = 50;
	half.gpu_count = 2;
	memory.vram_mib = 1024;
	both.share_percent = 25;
	both.vram_mib = 1024;
	none.gpu_count = 0;
	add(half);
	add(memory);
	add(both);
	add(none);
	check_hours(row_of(1), 100, 100);
	check_hours(row_of(2), 100, 100);
	check_hours(row_of(3), 25, 25);
	check_hours(row_of(4), 0, 0);
	assert_int_equal(row_of(4)->jobs, 1);
}

static void an_unseen_end_lies_between_two_times(void **state)
{
	struct history_end end = ran(1, 1, 1, 5);

	(void)state;
	begin();
	end.alive_ms = end.since_ms + HOUR_MS;
	add(end);
	check_hours(row_of(1), 100, 400);
	/* it was never seen alive */
	end.alive_ms = 0;
	add(end);
	check_hours(row_of(1), 100, 800);
}

static void only_what_lies_in_the_period_counts(void **state)
{
	(void)state;
	filter.from_ms = BEGIN_MS + 2 * HOUR_MS;
	filter.until_ms = BEGIN_MS + 6 * HOUR_MS;
	begin();
	add(ran(1, 1, 0, 3));
	add(ran(2, 2, 5, 9));
	add(ran(3, 3, 1, 8));
	add(ran(4, 4, 0, 1));
	add(ran(5, 5, 7, 8));
	accounting_finish(&sums);
	check_hours(row_of(1), 100, 100);
	check_hours(row_of(2), 100, 100);
	check_hours(row_of(3), 400, 400);
	assert_int_equal(sums.count, 3);
	assert_int_equal(sums.total.jobs, 3);
	/* of 4 GPUs for 4 hours */
	assert_int_equal(accounting_share(&sums, row_of(3)), 2500);
	assert_int_equal(accounting_share(&sums, &sums.total), 3750);
}

static void a_job_without_times_has_no_gpu_time(void **state)
{
	struct history_end end = ran(1, 1, 0, 0);

	(void)state;
	begin();
	end.since_ms = end.alive_ms = 0;
	add(end);
	check_hours(row_of(1), 0, 0);
	assert_int_equal(row_of(1)->jobs, 1);
	end.gone_ms = 0;
	add(end);
	check_hours(row_of(1), 0, 0);
	assert_int_equal(row_of(1)->jobs, 2);
	/* and in a period it is when it was found over, if that is known */
	filter.from_ms = BEGIN_MS;
	begin();
	add(end);
	assert_int_equal(sums.count, 0);
	end.gone_ms = BEGIN_MS + 1;
	add(end);
	assert_int_equal(sums.count, 1);
}

static void a_running_job_counts_up_to_now(void **state)
{
	struct history_end end = ran(1, 1, 4, 10);

	(void)state;
	begin();
	end.status[0] = '\0';
	assert_int_equal(accounting_add(&sums, &end, true), 0);
	check_hours(row_of(1), 600, 600);
	assert_int_equal(row_of(1)->running, 1);
	/* a filter of states does not admit it: it has no state yet */
	filter.states = 1u << END_UNKNOWN;
	begin();
	assert_int_equal(accounting_add(&sums, &end, true), 0);
	assert_int_equal(sums.count, 0);
}

static void impossible_numbers_do_not_overflow(void **state)
{
	struct history_end end = ran(1, 1, 0, 1);

	(void)state;
	begin();
	end.gpu_count = UINT32_MAX;
	end.share_percent = UINT32_MAX;
	end.since_ms = 1;
	end.alive_ms = end.gone_ms = INT64_MAX;
	end.waited_ms = INT64_MAX;
	text_copy(end.utilization, sizeof(end.utilization), "100/100");
	for (int i = 0; i < 100; i++)
		add(end);
	end.since_ms = INT64_MIN;
	end.alive_ms = end.gone_ms = INT64_MIN;
	end.waited_ms = INT64_MIN;
	add(end);
	accounting_finish(&sums);
	assert_true(row_of(1)->gpu_most_ms > 0);
	assert_true(accounting_mean_wait_ms(row_of(1)) > 0);
	assert_true(accounting_share(&sums, row_of(1)) > 0);
}

/* --- jobs --------------------------------------------------------------------------- */

static void add_attempt(uint64_t ticket, uint32_t uid, uint32_t attempt)
{
	struct history_end end = ran(ticket, uid, 0, 1);

	end.attempt = attempt;
	add(end);
}

static void a_job_counts_once_and_each_attempt_has_its_time(void **state)
{
	(void)state;
	begin();
	add_attempt(7, 1, 3);
	add_attempt(8, 1, 2); /* another one, in between */
	add_attempt(7, 2, 0); /* another user's */
	add_attempt(7, 1, 2);
	add_attempt(8, 1, 0);
	add_attempt(7, 1, 1);
	assert_int_equal(row_of(1)->jobs, 2);
	assert_int_equal(row_of(1)->attempts, 5);
	check_hours(row_of(1), 500, 500);
	assert_int_equal(row_of(2)->jobs, 1);
	assert_int_equal(sums.total.jobs, 3);
	assert_int_equal(sums.total.attempts, 6);
	/* numbers begin anew: this is another job */
	add_attempt(7, 1, 0);
	add_attempt(8, 1, 0);
	assert_int_equal(row_of(1)->jobs, 4);
}

static void first_attempts_may_lie_before_the_period(void **state)
{
	(void)state;
	begin();
	add_attempt(7, 1, 3);
	add_attempt(7, 1, 2);
	assert_int_equal(row_of(1)->jobs, 1);
	assert_int_equal(row_of(1)->attempts, 2);
}

static void the_largest_use_comes_first(void **state)
{
	struct history_end unseen = ran(5, 6, 0, 9);

	(void)state;
	begin();
	add(ran(1, 5, 0, 1));
	add(ran(2, 3, 0, 4));
	add(ran(3, 4, 0, 1));
	unseen.alive_ms = unseen.since_ms + HOUR_MS;
	add(unseen);
	accounting_finish(&sums);
	assert_int_equal(sums.rows[0].uid, 3);
	assert_int_equal(sums.rows[1].uid, 6);
	assert_int_equal(sums.rows[2].uid, 4);
	assert_int_equal(sums.rows[3].uid, 5);
}

/* --- waits and utilization ------------------------------------------------------------ */

static void waits_have_a_mean_and_a_95th_percentile(void **state)
{
	(void)state;
	begin();
	for (int i = 100; i >= 1; i--) {
		struct history_end end = ran((uint64_t)i, 1, 0, 1);

		end.waited_ms = i * 10;
		add(end);
	}
	add(ran(200, 2, 0, 1));
	accounting_finish(&sums);
	assert_int_equal(accounting_mean_wait_ms(row_of(1)), 505);
	assert_int_equal(accounting_p95_wait_ms(row_of(1)), 950);
	assert_int_equal(accounting_p95_wait_ms(row_of(2)), 0);
	assert_int_equal(accounting_p95_wait_ms(&sums.total), 950);
	begin();
	for (int i = 1; i <= 20; i++) {
		struct history_end end = ran((uint64_t)i, 1, 0, 1);

		end.waited_ms = i;
		add(end);
	}
	accounting_finish(&sums);
	assert_int_equal(accounting_p95_wait_ms(row_of(1)), 19);
	begin();
	accounting_finish(&sums);
	assert_int_equal(accounting_mean_wait_ms(&sums.total), -1);
	assert_int_equal(accounting_p95_wait_ms(&sums.total), -1);
}

static void utilization_is_weighted_by_gpu_time(void **state)
{
	struct history_end end = ran(1, 1, 0, 1);

	(void)state;
	begin();
	add(end);
	assert_int_equal(accounting_utilization(row_of(1)), -1);
	text_copy(end.utilization, sizeof(end.utilization), "90/100");
	add(end);
	end = ran(2, 1, 0, 3);
	text_copy(end.utilization, sizeof(end.utilization), "10/20");
	add(end);
	assert_int_equal(accounting_utilization(row_of(1)), 30);
	end.utilization[0] = '/';
	add(end);
	assert_int_equal(accounting_utilization(row_of(1)), 30);
}

static void utilization_is_read_as_it_is_recorded(void **state)
{
	static const char *const bad[] = { "", "/", "1/", "/1", "87", "101/1", "1/101",
		"a/b", "1/2/3", "-1/2" };
	struct history_end end = { .utilization = "87/100" };
	unsigned mean = 1, peak = 2;

	(void)state;
	assert_true(ended_utilization(&end, &mean, &peak));
	assert_int_equal(mean, 87);
	assert_int_equal(peak, 100);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		text_copy(end.utilization, sizeof(end.utilization), bad[i]);
		assert_false(ended_utilization(&end, &mean, &peak));
	}
}

/* --- the part of the machine ---------------------------------------------------------- */

static void the_period_begins_with_the_first_entry(void **state)
{
	(void)state;
	filter.user = "user1";
	begin();
	add(ran(2, 1, 5, 10));
	add(ran(1, 2, 2, 3)); /* it is not asked for, but it is the first */
	accounting_finish(&sums);
	assert_true(sums.from_ms == BEGIN_MS + 2 * HOUR_MS);
	assert_int_equal(sums.count, 1);
	/* 5 hours of 8 on 4 GPUs */
	assert_int_equal(accounting_share(&sums, row_of(1)), 1562);
}

static void without_known_gpus_there_is_no_share(void **state)
{
	(void)state;
	begin();
	accounting_finish(&sums);
	assert_int_equal(accounting_share(&sums, &sums.total), -1);
	add(ran(1, 1, 0, 1));
	accounting_finish(&sums);
	assert_int_equal(accounting_share(&sums, row_of(1)), 250);
	sums.gpus = 0;
	assert_int_equal(accounting_share(&sums, row_of(1)), -1);
}

/* --- filters -------------------------------------------------------------------------- */

static void every_filter_has_to_admit(void **state)
{
	struct history_end end = ran(1, 1000, 1, 2);

	(void)state;
	text_copy(end.name, sizeof(end.name), "train");
	assert_true(ended_filter_is_open(&filter));
	assert_true(ended_filter_admits(&filter, &end));
	filter.user = "user1000";
	filter.name = "train";
	filter.states = 1u << END_FINISHED | 1u << END_OOM;
	filter.from_ms = BEGIN_MS + 2 * HOUR_MS; /* it went at that moment */
	filter.until_ms = BEGIN_MS + 1 * HOUR_MS;
	assert_false(ended_filter_is_open(&filter));
	assert_true(ended_filter_admits(&filter, &end));
	filter.from_ms++;
	assert_false(ended_filter_admits(&filter, &end));
	filter.from_ms--;
	filter.until_ms--;
	assert_false(ended_filter_admits(&filter, &end));
	filter.until_ms++;
	filter.name = "trai";
	assert_false(ended_filter_admits(&filter, &end));
	filter.name = "train";
	filter.states = 1u << END_FAILED;
	assert_false(ended_filter_admits(&filter, &end));
	filter.states = 0;
	filter.user = "alice";
	assert_false(ended_filter_admits(&filter, &end));
	filter.has_uid = true;
	filter.uid = 1000;
	assert_true(ended_filter_admits(&filter, &end));
	filter.uid = 1001;
	assert_false(ended_filter_admits(&filter, &end));
}

static void a_long_name_is_compared_whole(void **state)
{
	static const char asked[] = "a-name-of-more-than-thirty-two-bytes";
	struct history_end end = ran(1, 1000, 1, 2);

	(void)state;
	text_copy(end.name, sizeof(end.name), asked);
	end.name_hash = job_name_hash(asked);
	filter.name = asked;
	assert_true(ended_filter_admits(&filter, &end));
	filter.name = "a-name-of-more-than-thirty-two-bytes-and-more";
	assert_false(ended_filter_admits(&filter, &end));
	filter.name = "a-name-of-more-than-thirty-two-b";
	assert_false(ended_filter_admits(&filter, &end));
}

static void states_are_a_list(void **state)
{
	static const char *const bad[] = { "", ",", "finished,", ",oom", "finish",
		"finished;oom", "running", "timed out", "ended oom" };
	struct why why = WHY_NONE;
	unsigned states = 4711;

	(void)state;
	assert_int_equal(ended_states_parse("finished", &states, &why), 0);
	assert_int_equal(states, 1u << END_FINISHED);
	assert_int_equal(ended_states_parse("Timed-Out,oom,oom,ended", &states, &why), 0);
	assert_int_equal(states, 1u << END_TIMED_OUT | 1u << END_OOM | 1u << END_UNKNOWN);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		states = 4711;
		assert_true(ended_states_parse(bad[i], &states, &why) < 0);
		assert_int_equal(states, 4711);
		assert_non_null(strstr(why.text,
			"the states are ended, finished, failed, cancelled, timed-out, oom, "
			"preempted, requeued, lost"));
	}
}

/* --- what is shown -------------------------------------------------------------------- */

static void fill(void)
{
	struct history_end end = ran(2, 2, 0, 8);

	begin();
	end.alive_ms = end.since_ms + 6 * HOUR_MS;
	text_copy(end.user, sizeof(end.user), "a,\"b\033");
	end.waited_ms = 61234;
	add(end);
	add_attempt(1, 1, 2);
	end = ran(1, 1, 1, 2);
	end.gpu_count = 2;
	text_copy(end.utilization, sizeof(end.utilization), "80/99");
	add(end);
	accounting_finish(&sums);
}

static void the_sums_are_a_table(void **state)
{
	struct page page;

	(void)state;
	fill();
	page_begin(&page);
	assert_int_equal(show_accounting(&sums, &plain, page.out), 0);
	page_is(&page,
		"USER   JOBS  TRIES  GPU-HOURS  UP TO   WAIT    P95  UTIL  SHARE\n"
		"a,\"b?     1      -       6.00   8.00  1m01s  1m01s     -  15.0%\n"
		"user1     1      2       3.00      -    <1s    <1s   80%   7.5%\n"
		"total     2      3       9.00  11.00    20s  1m01s   80%  22.5%\n"
		"from 2023-11-14 22:13 to 2023-11-15 08:13 on 4 GPUs\n");
	begin();
	accounting_finish(&sums);
	page_begin(&page);
	assert_int_equal(show_accounting(&sums, &plain, page.out), 0);
	page_is(&page, "no matching job has run\n");
}

static void the_sums_are_valid_json(void **state)
{
	static const char *const parts[] = { "\"gpulease-accounting/1\"", "\"gpus\": 4",
		"\"since_unix_ms\": 1700000000000", "\"until_unix_ms\": 1700036000000",
		("\"user\": \"user1\",\n      \"uid\": 1,\n      \"jobs\": 1,\n"
		 "      \"attempts\": 2,\n      \"running\": 0,\n"),
		"\"gpu_hours_least\": 6,\n      \"gpu_hours_most\": 8,",
		"\"wait_mean_ms\": 61234", "\"wait_p95_ms\": 61234",
		"\"utilization_mean_percent\": 80", "\"utilization_mean_percent\": null",
		"\"machine_share_percent\": 7.5", "\"total\": {\n    \"jobs\": 2,",
		"\"missing_lines\": 0", "\"missing_unix_ms\": null" };
	struct page page;
	size_t at;

	(void)state;
	fill();
	page_begin(&page);
	show_accounting_json(&sums, BEGIN_MS, "/x", page.out);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		page_has(&page, parts[i]);
	assert_true(json_is_valid(page.text, page.size, &at));
	page_end(&page);
	begin();
	accounting_finish(&sums);
	page_begin(&page);
	show_accounting_json(&sums, BEGIN_MS, "/x", page.out);
	page_has(&page, "\"since_unix_ms\": null");
	page_has(&page, "\"users\": []");
	page_has(&page, "\"wait_mean_ms\": null");
	page_has(&page, "\"machine_share_percent\": null");
	page_end(&page);
}

static void the_sums_are_lines_of_csv(void **state)
{
	struct page page;

	(void)state;
	fill();
	sums.gpus = 0;
	page_begin(&page);
	show_accounting_csv(&sums, page.out);
	page_is(&page, "user,uid,jobs,attempts,running,gpu_hours_least,gpu_hours_most,"
		       "wait_mean_seconds,wait_p95_seconds,utilization_mean_percent,"
		       "machine_share_percent,unused_gpu_hours\r\n"
		       "\"a,\"\"b?\",2,1,1,0,6.00,8.00,61.234,61.234,,,\r\n"
		       "user1,1,1,2,0,3.00,3.00,0.000,0.000,80,,\r\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gpu_time_is_gpus_times_time),
		TEST(a_share_counts_as_its_part_and_memory_as_a_whole),
		TEST(an_unseen_end_lies_between_two_times),
		TEST(only_what_lies_in_the_period_counts),
		TEST(a_job_without_times_has_no_gpu_time),
		TEST(a_running_job_counts_up_to_now),
		TEST(impossible_numbers_do_not_overflow),
		TEST(a_job_counts_once_and_each_attempt_has_its_time),
		TEST(first_attempts_may_lie_before_the_period),
		TEST(the_largest_use_comes_first),
		TEST(waits_have_a_mean_and_a_95th_percentile),
		TEST(utilization_is_weighted_by_gpu_time),
		TEST(utilization_is_read_as_it_is_recorded),
		TEST(the_period_begins_with_the_first_entry),
		TEST(without_known_gpus_there_is_no_share),
		TEST(every_filter_has_to_admit),
		TEST(a_long_name_is_compared_whole),
		TEST(states_are_a_list),
		TEST(the_sums_are_a_table),
		TEST(the_sums_are_valid_json),
		TEST(the_sums_are_lines_of_csv),
	};

	/* the period is in local time */
	(void)setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
