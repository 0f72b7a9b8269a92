#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "date_time.h"

static const int64_t HOUR_MS = INT64_C(3600) * 1000, DAY_MS = INT64_C(24) * 3600 * 1000;

/* 2026-11-20 12:34:56.789 in UTC. */
static const int64_t NOW_MS = INT64_C(1795178096789);

static struct why why;

static void zone(const char *name)
{
	(void)setenv("TZ", name, 1);
	tzset();
}

static int64_t at(const char *text, int64_t now_ms)
{
	int64_t at_ms = -4711;

	if (date_time_parse(text, now_ms, &at_ms, &why) < 0)
		fail_msg("'%s': %s", text, why.text);
	return at_ms;
}

/* The moment in local time, with the zone's name. */
static void check_local(const char *text, int64_t now_ms, const char *wanted)
{
	time_t then = (time_t)(at(text, now_ms) / 1000);
	struct tm local;
	char shown[64];

	assert_non_null(localtime_r(&then, &local));
	assert_true(strftime(shown, sizeof(shown), "%Y-%m-%d %H:%M:%S %Z", &local) > 0);
	if (strcmp(shown, wanted) != 0)
		fail_msg("'%s' is %s, not %s", text, shown, wanted);
}

static void a_date_and_a_time_are_local(void **state)
{
	static const char *const cases[][2] = {
		{ "2026-11-20", "2026-11-20 00:00:00 EST" },
		{ "2026-11-20T10:30", "2026-11-20 10:30:00 EST" },
		{ "2026-11-20 10:30", "2026-11-20 10:30:00 EST" },
		{ "2026-07-01T23:59:59", "2026-07-01 23:59:59 EDT" },
		{ "2024-02-29", "2024-02-29 00:00:00 EST" },
		{ "2000-02-29", "2000-02-29 00:00:00 EST" },
		{ "1970-01-01 00:00", "1970-01-01 00:00:00 EST" },
		{ "9999-12-31 18:59:59", "9999-12-31 18:59:59 EST" },
		{ "10:30", "2026-11-20 10:30:00 EST" },
		{ "00:00:01", "2026-11-20 00:00:01 EST" },
		{ "23:59", "2026-11-20 23:59:00 EST" }, /* it may be to come */
		{ "today", "2026-11-20 00:00:00 EST" },
		{ "yesterday", "2026-11-19 00:00:00 EST" },
	};

	(void)state;
	zone("EST5EDT,M3.2.0,M11.1.0");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_local(cases[i][0], NOW_MS, cases[i][1]);
}

static void today_follows_the_time_zone(void **state)
{
	int64_t late_ms = INT64_C(1795142000000); /* 2026-11-20 02:33:20 in UTC */

	(void)state;
	zone("EST5");
	check_local("today", late_ms, "2026-11-19 00:00:00 EST");
	check_local("01:00", late_ms, "2026-11-19 01:00:00 EST");
	zone("JST-9");
	check_local("today", late_ms + 13 * HOUR_MS, "2026-11-21 00:00:00 JST");
	zone("UTC");
	assert_true(at("today", NOW_MS) == NOW_MS / DAY_MS * DAY_MS);
	assert_true(at("yesterday", NOW_MS) == (NOW_MS / DAY_MS - 1) * DAY_MS);
	/* at its first moment it has begun */
	assert_true(at("today", NOW_MS / DAY_MS * DAY_MS) == NOW_MS / DAY_MS * DAY_MS);
}

static void a_duration_means_that_long_ago(void **state)
{
	(void)state;
	assert_true(at("now", NOW_MS) == NOW_MS);
	assert_true(at("7d", NOW_MS) == NOW_MS - 7 * DAY_MS);
	assert_true(at("90m", NOW_MS) == NOW_MS - 90 * 60 * 1000);
	assert_true(at("1.5h", NOW_MS) == NOW_MS - 90 * 60 * 1000);
	assert_true(at("30s", NOW_MS) == NOW_MS - 30 * 1000);
	assert_true(at("1d", 1000) == 0); /* not before there was time */
}

static void seconds_are_since_1970(void **state)
{
	(void)state;
	assert_true(at("@0", NOW_MS) == 0);
	assert_true(at("@1795170600", NOW_MS) == INT64_C(1795170600000));
	assert_true(at("@253402300799", NOW_MS) == INT64_C(253402300799000));
}

/* Clocks go from 2:00 to 3:00 on 2026-03-29 and from 3:00 to 2:00 on 2026-10-25. */
static void a_time_that_occurs_twice_means_the_first(void **state)
{
	static const char *const cases[][2] = {
		{ "2026-10-25", "2026-10-25 00:00:00 CEST" },
		{ "2026-10-25 01:59:59", "2026-10-25 01:59:59 CEST" },
		{ "2026-10-25 02:00", "2026-10-25 02:00:00 CEST" },
		{ "2026-10-25 02:30", "2026-10-25 02:30:00 CEST" },
		{ "2026-10-25 03:00", "2026-10-25 03:00:00 CET" },
		{ "2026-10-26", "2026-10-26 00:00:00 CET" },
		{ "2026-03-29 01:59:59", "2026-03-29 01:59:59 CET" },
		{ "2026-03-29 02:00", "2026-03-29 03:00:00 CEST" },
		{ "2026-03-29 02:30", "2026-03-29 03:30:00 CEST" },
		{ "2026-03-29 03:00", "2026-03-29 03:00:00 CEST" },
		{ "2026-03-30", "2026-03-30 00:00:00 CEST" },
	};

	(void)state;
	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_local(cases[i][0], NOW_MS, cases[i][1]);
	/* the other way round: it is winter time that has a name of its own */
	zone("IST-1GMT0,M10.5.0,M3.5.0/1");
	check_local("2026-10-25 01:30", NOW_MS, "2026-10-25 01:30:00 IST");
	check_local("2026-03-29 01:30", NOW_MS, "2026-03-29 02:30:00 IST");
	/* and a day that begins at one o'clock */
	zone("XST3XDT,M9.1.0/0,M4.1.0/0");
	check_local("2026-09-06", NOW_MS, "2026-09-06 01:00:00 XDT");
}

/* A day of 25 hours has 24 names. */
static void today_is_whole_days_from_yesterday(void **state)
{
	int64_t now_ms;

	(void)state;
	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	now_ms = at("2026-10-26 00:10", NOW_MS);
	assert_true(at("today", now_ms) - at("yesterday", now_ms) == 25 * HOUR_MS);
	now_ms = at("2026-03-30 12:00", NOW_MS);
	assert_true(at("today", now_ms) - at("yesterday", now_ms) == 23 * HOUR_MS);
	/* on the day itself */
	now_ms = at("2026-10-25 12:00", NOW_MS);
	assert_true(now_ms - at("today", now_ms) == 13 * HOUR_MS);
	assert_true(now_ms - at("01:00", now_ms) == 12 * HOUR_MS);
}

static void a_malformed_time_is_refused_with_the_allowed_forms(void **state)
{
	static const char *const bad[] = { "", " ", "x", "2026", "2026-11", "2026-11-2",
		"2026-11-201", "20-11-2026", "2026-13-01", "2026-00-01", "2026-01-00",
		"2026-04-31", "2026-02-29", "2100-02-29", "1969-12-31", "0000-01-01",
		"2026-11-20T", "2026-11-20 ", "2026-11-20T1:30", "2026-11-20T10",
		"2026-11-20T10:3", "2026-11-20T10:30:", "2026-11-20T10:30:5",
		"2026-11-20T10:30:05Z", "2026-11-20t10:30", "2026-11-20  10:30",
		"2026/11/20", "24:00", "10:60", "10:30:60", "1030", "90", "7", "0", "-7d",
		"7 d", "7days", "11y", "@", "@-1", "@1.5", "@253402300800", "Today",
		"tomorrow", " today", "today ", "+1d", "2026-1a-20" };

	(void)state;
	zone("UTC");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int64_t at_ms = 4711;

		if (date_time_parse(bad[i], NOW_MS, &at_ms, &why) == 0)
			fail_msg("'%s' is read", bad[i]);
		assert_true(at_ms == 4711);
		assert_non_null(strstr(why.text, "write 2026-11-20, 2026-11-20T10:30"));
		assert_null(strchr(why.text, '\n'));
	}
}

static void a_time_is_written_as_local_clocks_show_it(void **state)
{
	int64_t at_ms, midnight_ms;
	char words[40];
	struct text text = TEXT_ON(words);

	(void)state;
	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	at_ms = at("2026-11-20 10:30:05", NOW_MS);
	midnight_ms = at("2026-11-20", NOW_MS);
	date_time_add(at_ms, DATE_TIME_DAY | DATE_TIME_SECONDS, &text);
	text_add(&text, " ");
	date_time_add_near(at_ms, midnight_ms, 0, &text);
	assert_string_equal(words, "2026-11-20 10:30:05 10:30");
	/* another day, and that day in another year, are written as a date */
	text = TEXT_ON(words);
	date_time_add_near(at_ms, midnight_ms - 1, DATE_TIME_SECONDS, &text);
	assert_string_equal(words, "2026-11-20 10:30");
	text = TEXT_ON(words);
	date_time_add_near(at_ms, at("2025-11-20", NOW_MS), DATE_TIME_SECONDS, &text);
	assert_string_equal(words, "2026-11-20 10:30");
	/* so is a time a day ago, or in the future */
	text = TEXT_ON(words);
	date_time_add_since(at_ms, at_ms + 24 * 3600 * 1000 - 1, &text);
	assert_string_equal(words, "10:30:05");
	text = TEXT_ON(words);
	date_time_add_since(at_ms, at_ms + 24 * 3600 * 1000, &text);
	assert_string_equal(words, "2026-11-20 10:30");
	text = TEXT_ON(words);
	date_time_add_since(at_ms, at_ms - 1, &text);
	assert_string_equal(words, "2026-11-20 10:30");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_date_and_a_time_are_local),
		cmocka_unit_test(today_follows_the_time_zone),
		cmocka_unit_test(a_duration_means_that_long_ago),
		cmocka_unit_test(seconds_are_since_1970),
		cmocka_unit_test(a_time_that_occurs_twice_means_the_first),
		cmocka_unit_test(today_is_whole_days_from_yesterday),
		cmocka_unit_test(a_malformed_time_is_refused_with_the_allowed_forms),
		cmocka_unit_test(a_time_is_written_as_local_clocks_show_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
