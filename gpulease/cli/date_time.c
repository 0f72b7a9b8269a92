#include <errno.h>
#include <time.h>

#include "option_table.h"
#include "clock.h"
#include "parse.h"
#include "date_time.h"

enum { DAY_S = 24 * 3600, YEAR_LEAST = 1970, YEAR_MOST = 9999 };

static const uint64_t SECONDS_MOST = UINT64_C(253402300799); /* the end of YEAR_MOST */

/* --- the calendar ------------------------------------------------------------------ */

static unsigned days_in_month(int year, int month)
{
	static const unsigned char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30,
		31 };
	bool is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && is_leap ? 1u : 0u);
}

/*
 * Sets *@ret to the seconds by which local time is ahead of UTC at @at.  Returns false if that is
 * not known.
 */
static bool date_time_offset(int64_t at, int64_t *ret)
{
	time_t time = (time_t)at;
	struct tm local;

	if (!localtime_r(&time, &local))
		return false;
	*ret = local.tm_gmtoff;
	return true;
}

/*
 * Sets *@ret to the moment at which local clocks show @shown, which is written as if it were UTC.
 * Near a change of the clocks two offsets are possible: the earlier moment that fits is taken.  If
 * neither fits, the clocks skip @shown, and the offset before the change is used.
 */
static bool date_time_from_local(int64_t shown, int64_t *ret)
{
	int64_t before, after, own;

	if (!date_time_offset(shown - DAY_S, &before) ||
		!date_time_offset(shown + DAY_S, &after))
		return false;
	*ret = shown - max_i64(before, after);
	if (date_time_offset(*ret, &own) && *ret + own == shown)
		return true;
	*ret = shown - min_i64(before, after);
	if (date_time_offset(*ret, &own) && *ret + own == shown)
		return true;
	*ret = shown - before;
	return true;
}

/* Sets *@ret to midnight of the local day of @now, written as if it were UTC. */
static bool date_time_today(int64_t now, int64_t *ret)
{
	int64_t offset;

	if (!date_time_offset(now, &offset))
		return false;
	*ret = now + offset - (now + offset) % DAY_S;
	return true;
}

/* --- the forms --------------------------------------------------------------------- */

/* Reads exactly @digits digits at *@at, and then the character @separator unless that is 0. */
static bool date_time_read_number(const char **at, int digits, char separator, int *ret)
{
	int value = 0;

	for (int i = 0; i < digits; i++, (*at)++) {
		if (**at < '0' || **at > '9')
			return false;
		value = value * 10 + (**at - '0');
	}
	*ret = value;
	if (!separator)
		return true;
	return *(*at)++ == separator;
}

/* Reads "10:30" or "10:30:05", up to the end of @text, as seconds since midnight. */
static bool date_time_read_time(const char *text, int64_t *ret)
{
	int hour, minute, second = 0;

	if (!date_time_read_number(&text, 2, ':', &hour) ||
		!date_time_read_number(&text, 2, 0, &minute))
		return false;
	if (*text == ':') {
		text++;
		if (!date_time_read_number(&text, 2, 0, &second))
			return false;
	}
	*ret = (hour * 60 + minute) * 60 + second;
	return !*text && hour < 24 && minute < 60 && second < 60;
}

/* Reads "2026-11-20" and the time that may follow, as if it were UTC. */
static bool date_time_read_date(const char *text, int64_t *ret)
{
	struct tm day = { .tm_isdst = 0 };
	int year, month, date;
	int64_t time = 0;

	if (!date_time_read_number(&text, 4, '-', &year) ||
		!date_time_read_number(&text, 2, '-', &month) ||
		!date_time_read_number(&text, 2, 0, &date) || year < YEAR_LEAST ||
		month < 1 || month > 12 || date < 1 ||
		(unsigned)date > days_in_month(year, month))
		return false;
	if (*text && *text != 'T' && *text != ' ')
		return false;
	if (*text && !date_time_read_time(text + 1, &time))
		return false;
	day.tm_year = year - 1900;
	day.tm_mon = month - 1;
	day.tm_mday = date;
	*ret = timegm(&day) + time;
	return true;
}

/* Reads the forms that mean local time. */
static bool date_time_read_local(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	int64_t today, shown, at;

	if (!date_time_today(now_ms / 1000, &today))
		return false;
	if (strcmp(text, "today") == 0)
		shown = today;
	else if (strcmp(text, "yesterday") == 0)
		shown = today - DAY_S;
	else if (date_time_read_time(text, &at))
		shown = today + at;
	else if (!date_time_read_date(text, &shown))
		return false;
	if (!date_time_from_local(shown, &at))
		return false;
	*ret_ms = max_i64(0, at) * 1000;
	return true;
}

/* Reads "7d".  A number without a unit is refused: it could mean many things. */
static bool date_time_read_ago(const char *text, int64_t now_ms, int64_t *ret_ms)
{
	size_t size = strlen(text);
	int64_t ago_ms;

	if (!size || (text[size - 1] >= '0' && text[size - 1] <= '9') ||
		parse_duration_ms(text, &ago_ms, NULL) < 0)
		return false;
	*ret_ms = max_i64(0, now_ms - ago_ms);
	return true;
}

/* Reads "@SECONDS". */
static bool date_time_read_seconds(const char *text, int64_t *ret_ms)
{
	uint64_t seconds;

	if (text[0] != '@' || parse_u64(text + 1, SECONDS_MOST, &seconds, NULL) < 0)
		return false;
	*ret_ms = (int64_t)seconds * 1000;
	return true;
}

int date_time_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct why *why)
{
	if (strcmp(text, "now") == 0) {
		*ret_ms = now_ms;
		return 0;
	}
	if (date_time_read_seconds(text, ret_ms) ||
		date_time_read_ago(text, now_ms, ret_ms) ||
		date_time_read_local(text, now_ms, ret_ms))
		return 0;
	why_set(why,
		"'%s' is not a time; write 2026-11-20, 2026-11-20T10:30, 10:30, today, "
		"yesterday, now, 7d (ago) or @SECONDS",
		quote(text).text);
	return -EINVAL;
}

/* --- writing ----------------------------------------------------------------------- */

static bool to_local(int64_t at_ms, struct tm *ret)
{
	time_t at = (time_t)(at_ms / 1000);

	return localtime_r(&at, ret) != NULL;
}

void date_time_add(int64_t at_ms, unsigned parts, struct text *out)
{
	struct tm local;

	if (!to_local(at_ms, &local))
		return;
	if (parts & DATE_TIME_DAY)
		text_addf(out, "%d-%02d-%02d ", local.tm_year + 1900, local.tm_mon + 1,
			local.tm_mday);
	text_addf(out, "%02d:%02d", local.tm_hour, local.tm_min);
	if (parts & DATE_TIME_SECONDS)
		text_addf(out, ":%02d", local.tm_sec);
}

void date_time_add_since(int64_t at_ms, int64_t now_ms, struct text *out)
{
	bool is_recent = clock_age_ms(now_ms, at_ms) < INT64_C(86400000);

	date_time_add(at_ms, is_recent ? DATE_TIME_SECONDS : DATE_TIME_DAY, out);
}

void date_time_add_near(int64_t at_ms, int64_t now_ms, unsigned parts, struct text *out)
{
	struct tm then, today;

	if (!to_local(at_ms, &then) || !to_local(now_ms, &today))
		return;
	if (then.tm_year != today.tm_year || then.tm_yday != today.tm_yday)
		parts = DATE_TIME_DAY;
	date_time_add(at_ms, parts, out);
}
