#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "begin_time.h"

static struct why why;

static void zone(const char *name)
{
	(void)setenv("TZ", name, 1);
	tzset();
}

/* The moment at which local clocks show @shown, "2026-11-24 18:39:27". */
static int64_t local_ms(const char *shown)
{
	struct tm tm = { .tm_isdst = -1 };

	assert_non_null(strptime(shown, "%Y-%m-%d %H:%M:%S", &tm));
	return (int64_t)mktime(&tm) * 1000;
}

static void check(const char *now, const char *text, const char *wanted)
{
	int64_t at_ms = -4711;
	struct tm local;
	time_t then;
	char shown[64];

	if (begin_time_parse(text, local_ms(now), &at_ms, &why) < 0)
		fail_msg("'%s': %s", text, why.text);
	then = (time_t)(at_ms / 1000);
	assert_non_null(localtime_r(&then, &local));
	assert_true(strftime(shown, sizeof(shown), "%Y-%m-%d %H:%M:%S", &local) > 0);
	if (strcmp(shown, wanted) != 0)
		fail_msg("'%s' is %s, not %s", text, shown, wanted);
}

/* A Tuesday.  What Slurm 22.05 says, of its own forms. */
#define NOW "2026-11-24 18:39:27"

static void the_forms_of_slurm_mean_what_they_mean_there(void **state)
{
	static const char *const cases[][2] = {
		{ "22:00", "2026-11-24 22:00:00" },
		{ "01:00", "2026-11-25 01:00:00" },
		{ "now", NOW },
		{ "NOW", NOW },
		{ "now+1hour", "2026-11-24 19:39:27" },
		{ "now+30minutes", "2026-11-24 19:09:27" },
		{ "now+2days", "2026-11-26 18:39:27" },
		{ "now+90", "2026-11-24 18:40:57" },
		{ "now+1week", "2026-12-01 18:39:27" },
		{ "now+1weeks", "2026-12-01 18:39:27" },
		{ "now + 1 hour", "2026-11-24 19:39:27" },
		{ "now-1hour", "2026-11-24 17:39:27" },
		{ "midnight", "2026-11-25 00:00:00" },
		{ "noon", "2026-11-25 12:00:00" },
		{ "NOON", "2026-11-25 12:00:00" },
		{ "teatime", "2026-11-25 16:00:00" },
		{ "fika", "2026-11-25 15:00:00" },
		{ "today", "2026-11-24 00:00:00" },
		{ "tomorrow", "2026-11-25 00:00:00" },
		{ "16:00 tomorrow", "2026-11-25 16:00:00" },
		{ "tomorrow 16:00", "2026-11-25 16:00:00" },
		{ "tomorrow16:00", "2026-11-25 16:00:00" },
		{ "1127", "2026-11-27 00:00:00" },
		{ "112726", "2026-11-27 00:00:00" },
		{ "11/27", "2026-11-27 00:00:00" },
		{ "11/27/26", "2026-11-27 00:00:00" },
		{ "11/23", "2027-11-23 00:00:00" },
		{ "11.27", "2026-11-27 00:00:00" },
		{ "11/27T09:00", "2026-11-27 09:00:00" },
		{ "11/27 09:00", "2026-11-27 09:00:00" },
		{ "09:00-11/27", "2026-11-27 09:00:00" },
		{ "2026-11-27T09:00", "2026-11-27 09:00:00" },
		{ "2026-11-27T09:00:30", "2026-11-27 09:00:30" },
		{ "2026-11-27T9:00", "2026-11-27 09:00:00" },
		{ "2026-11-27 09:00", "2026-11-27 09:00:00" },
		{ "2026-11-27", "2026-11-27 00:00:00" },
		{ "2020-01-01", "2020-01-01 00:00:00" },
		{ "9:00", "2026-11-25 09:00:00" },
		{ "9:00am", "2026-11-25 09:00:00" },
		{ "9:00 PM", "2026-11-24 21:00:00" },
		{ "12:30am", "2026-11-25 00:30:00" },
		{ "12:30pm", "2026-11-25 12:30:00" },
	};

	(void)state;
	zone("UTC");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check(NOW, cases[i][0], cases[i][1]);
}

static void there_are_days_of_the_week_and_short_units(void **state)
{
	static const char *const cases[][2] = {
		{ "fri", "2026-11-27 00:00:00" },
		{ "fri 9:00", "2026-11-27 09:00:00" },
		{ "Friday 09:00", "2026-11-27 09:00:00" },
		{ "9:00 fri", "2026-11-27 09:00:00" },
		{ "monday", "2026-11-30 00:00:00" },
		/* today is a Tuesday: today if it is to come, else in a week */
		{ "tue", "2026-12-01 00:00:00" },
		{ "tue 18:00", "2026-12-01 18:00:00" },
		{ "tue 19:00", "2026-11-24 19:00:00" },
		{ "now+90s", "2026-11-24 18:40:57" },
		{ "now+1h", "2026-11-24 19:39:27" },
		{ "now+5min", "2026-11-24 18:44:27" },
		{ " now+2d ", "2026-11-26 18:39:27" },
	};

	(void)state;
	zone("UTC");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check(NOW, cases[i][0], cases[i][1]);
}

static void clocks_that_change_are_those_of_the_zone(void **state)
{
	(void)state;
	zone("Europe/Berlin");
	/* set forward on March 28 2027 at 2:00, set back on October 31 at 3:00 */
	check("2027-03-27 23:00:00", "12:00", "2027-03-28 12:00:00");
	check("2027-03-27 23:00:00", "tomorrow 04:00", "2027-03-28 04:00:00");
	check("2027-10-30 23:00:00", "12:00", "2027-10-31 12:00:00");
	check("2027-10-30 12:00:00", "now+1day", "2027-10-31 11:00:00");
	check("2026-12-31 23:59:59", "tomorrow", "2027-01-01 00:00:00");
	check("2028-02-28 10:00:00", "9:00", "2028-02-29 09:00:00");
}

static void other_text_is_refused_with_the_forms(void **state)
{
	static const char *const bad[] = { "", " ", "x", "elevenses", "9am", "22",
		"25:00", "10:60", "0:0", "10:30:61", "13:00pm", "0:30am",
		"2026-11-27T24:00", "now+1.5hours", "now+", "now+x", "now+2month",
		"now+1hour 9:00", "noon+1", "2026-02-30", "2026-13-01", "2026-11-0",
		"1301", "1100", "0", "-", "9:00 10:00", "today tomorrow", "fri sat", "fr",
		"todayx", "2026-11", "now+12345678901", "now now", "9:00 now",
		"tomorrow now", "11/27/2026", "2026-11-27T", "@5", "7d", "11/", "/27",
		"12:3" };

	(void)state;
	zone("UTC");
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		int64_t at_ms = 4711;

		if (begin_time_parse(bad[i], local_ms(NOW), &at_ms, &why) == 0)
			fail_msg("'%s' is read", bad[i]);
		assert_true(at_ms == 4711);
		assert_non_null(strstr(why.text, "write 22:00, 'fri 9:00'"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_forms_of_slurm_mean_what_they_mean_there),
		cmocka_unit_test(there_are_days_of_the_week_and_short_units),
		cmocka_unit_test(clocks_that_change_are_those_of_the_zone),
		cmocka_unit_test(other_text_is_refused_with_the_forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
