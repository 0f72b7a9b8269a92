#include <errno.h>
#include <time.h>

#include "cli_table.h"
#include "clock.h"
#include "parse.h"
#include "when.h"

enum { DAY_S = 24 * 3600, YEAR_LEAST = 1970, YEAR_MOST = 9999 };

static const uint64_t SECONDS_MOST = UINT64_C(253402300799); /* the end of that year */

/* --- the calendar ------------------------------------------------------------------ */

static unsigned days_in_month(int year, int month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30,
		31 };
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && is_leap ? 1u : 0u);
}

/* By how much local time is ahead of UTC at @at. */
static bool find_offset(int64_t at, int64_t *ret)
{
	time_t time = (time_t)at;
	struct tm local;

	if (!localtime_r(&time, &local))
		return false;
	*ret = local.tm_gmtoff;
	return true;
}

/*
 * The moment at which the clocks show @shown, a time as if it were UTC.  Around a change there
 * are two offsets: the first moment that fits is meant; where none does the clocks skip it.
 */
static bool find_moment(int64_t shown, int64_t *ret)
{
	int64_t before, after, own;

	if (!find_offset(shown - DAY_S, &before) || !find_offset(shown + DAY_S, &after))
		return false;
	*ret = shown - max_i64(before, after);
	if (find_offset(*ret, &own) && *ret + own == shown)
		return true;
	*ret = shown - min_i64(before, after);
	if (find_offset(*ret, &own) && *ret + own == shown)
		return true;
	*ret = shown - before;
	return true;
}

/* The local day of @now, at midnight, as if it were UTC. */
static bool find_today(int64_t now, int64_t *ret)
{
	int64_t offset;

	if (!find_offset(now, &offset))
		return false;
	*ret = now + offset - (now + offset) % DAY_S;
	return true;
}

/* --- the forms --------------------------------------------------------------------- */

/* Takes exactly @digits of them from *@at, and then @behind, unless that is 0. */
static bool take_number(const char **at, int digits, char behind, int *ret)
{
	int value = 0;

	for (int i = 0; i < digits; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		value = value * 10 + (**at - '0');
	}
	*ret = value;
	if (!behind)
		return true;
	return *(*at)++ == behind;
}

/* "10:30", "10:30:05", to the end of the text: seconds since midnight. */
static bool read_time(const char *text, int64_t *ret)
{
	int hour, minute, second = 0;

	if (!take_number(&text, 2, ':', &hour) || !take_number(&text, 2, 0, &minute))
		return false;
	if (*text == ':') {
		text++;
		if (!take_number(&text, 2, 0, &second))
			return false;
	}
	*ret = (hour * 60 + minute) * 60 + second;
	return !*text && hour < 24 && minute < 60 && second < 60;
}

/* "2026-11-20", and what may stand behind it: as if it were UTC. */
static bool read_date(const char *text, int64_t *ret)
{
	struct tm day = { .tm_isdst = 0 };
	int year, month, date;
	int64_t time = 0;

	if (!take_number(&text, 4, '-', &year) || !take_number(&text, 2, '-', &month) ||
		!take_number(&text, 2, 0, &date) || year < YEAR_LEAST || month < 1 ||
		month > 12 || date < 1 || (unsigned)date > days_in_month(year, month))
		return false;
	if (*text && *text != 'T' && *text != ' ')
		return false;
	if (*text && !read_time(text + 1, &time))
		return false;
	day.tm_year = year - 1900;
	day.tm_mon = month - 1;
	day.tm_mday = date;
	*ret = timegm(&day) + time;
	return true;
}

/* What is told by the clocks and the calendar. */
static bool read_local(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	int64_t today, shown, at;

	if (!find_today(now_ms / 1000, &today))
		return false;
	if (strcmp(text, "today") == 0)
		shown = today;
	else if (strcmp(text, "yesterday") == 0)
		shown = today - DAY_S;
	else if (read_time(text, &at))
		shown = today + at;
	else if (!read_date(text, &shown))
		return false;
	if (!find_moment(shown, &at))
		return false;
	*ret_ms = max_i64(0, at) * 1000;
	return true;
}

/* "7d": a bare number is no time ago, it could be anything. */
static bool read_ago(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	size_t size = strlen(text);
	int64_t ago_ms;

	if (!size || (text[size - 1] >= '0' && text[size - 1] <= '9') ||
		parse_duration_ms(text, &ago_ms, NULL) < 0)
		return false;
	*ret_ms = max_i64(0, now_ms - ago_ms);
	return true;
}

static bool read_seconds(const char *text, int64_t *ret_ms)
{
	uint64_t seconds;

	if (text[0] != '@' || parse_u64(text + 1, SECONDS_MOST, &seconds, NULL) < 0)
		return false;
	*ret_ms = (int64_t)seconds * 1000;
	return true;
}

int when_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct why *why)
{
	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return 0;
	}
	if (read_seconds(text, ret_ms) || read_ago(text, now_ms, ret_ms) ||
		read_local(text, now_ms, ret_ms))
		return 0;
	why_set(why,
		"'%s' is no time; write 2026-11-20, 2026-11-20T10:30, 10:30, today, "
		"yesterday, now, 7d (ago) or @SECONDS",
		quote(text).text);
	return -EINVAL;
}

int read_when(const char *value, void *at, struct why *why)
{
	return when_parse(value, clock_real_ms(), at, why);
}
