#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <time.h>

#include "begin_time.h"
#include "parse.h"

enum { HOUR_S = 3600, DAY_S = 24 * HOUR_S, WEEK_DAYS = 7, DIGITS_MOST = 9 };

/* What was read of a time. */
struct begin {
	const char *at; /* the rest of the text */
	struct tm now, day;
	int64_t now_s, later_s; /* ->later_s: of now+… */
	int time_s;             /* since midnight */
	bool has_now, has_time, has_day, has_year, is_weekday;
};

/* Words: `midnight` and the like as hours, days after today, days of the week. */
enum word_kind { WORD_NOW, WORD_TIME, WORD_DAY, WORD_WEEKDAY };

static const struct {
	char text[10];
	unsigned char kind, value;
	unsigned char least; /* letters of an abbreviation */
} words[] = {
	{ "now", WORD_NOW, 0, 3 },
	{ "midnight", WORD_TIME, 0, 8 },
	{ "noon", WORD_TIME, 12, 4 },
	{ "fika", WORD_TIME, 15, 4 },
	{ "teatime", WORD_TIME, 16, 7 },
	{ "today", WORD_DAY, 0, 5 },
	{ "tomorrow", WORD_DAY, 1, 8 },
	{ "sunday", WORD_WEEKDAY, 0, 3 },
	{ "monday", WORD_WEEKDAY, 1, 3 },
	{ "tuesday", WORD_WEEKDAY, 2, 3 },
	{ "wednesday", WORD_WEEKDAY, 3, 3 },
	{ "thursday", WORD_WEEKDAY, 4, 3 },
	{ "friday", WORD_WEEKDAY, 5, 3 },
	{ "saturday", WORD_WEEKDAY, 6, 3 },
};

static void skip_blanks(struct begin *begin)
{
	begin->at += strspn(begin->at, " \t");
}

/* Reads digits, at most @most.  Returns how many there were; 0: none, or too many. */
static unsigned read_number(struct begin *begin, unsigned most, int *ret)
{
	unsigned digits = 0;

	*ret = 0;
	for (; isdigit((unsigned char)*begin->at); begin->at++, digits++)
		if (digits < most)
			*ret = *ret * 10 + (*begin->at - '0');
	return digits > most ? 0 : digits;
}

static size_t count_letters(const char *text)
{
	size_t size = 0;

	while (isalpha((unsigned char)text[size]))
		size++;
	return size;
}

/* --- parts -------------------------------------------------------------------------- */

/* Reads what follows `now`: nothing, or "+90", "+2hours". */
static bool read_later(struct begin *begin)
{
	static const struct {
		char text[8];
		int seconds;
	} units[] = { { "seconds", 1 }, { "minutes", 60 }, { "hours", HOUR_S },
		{ "days", DAY_S }, { "weeks", WEEK_DAYS * DAY_S } };
	int sign, number;
	size_t size;

	skip_blanks(begin);
	if (!*begin->at)
		return true;
	sign = *begin->at == '-' ? -1 : 1;
	if (*begin->at != '-' && *begin->at != '+')
		return false;
	begin->at++;
	skip_blanks(begin);
	if (!read_number(begin, DIGITS_MOST, &number))
		return false;
	skip_blanks(begin);
	size = count_letters(begin->at);
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strncasecmp(begin->at, units[i].text, size) == 0) {
			begin->at += size;
			begin->later_s = (int64_t)sign * number * units[i].seconds;
			return true;
		}
	return false;
}

static bool set_time(struct begin *begin, int time_s)
{
	bool is_first = !begin->has_time;

	begin->time_s = time_s;
	begin->has_time = true;
	return is_first;
}

static bool set_day(struct begin *begin, int year, int month, int date)
{
	struct tm day = { .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = date };
	struct tm is = day;
	bool is_first = !begin->has_day;

	begin->day = day;
	begin->has_day = true;
	/* timegm() turns November 31 into December 1 */
	return is_first && timegm(&is) != -1 && is.tm_mon == day.tm_mon &&
	       is.tm_mday == date;
}

/* Sets the day that is @days after today. */
static bool set_day_after(struct begin *begin, int days)
{
	bool is_first = !begin->has_day;

	begin->day = begin->now;
	begin->day.tm_mday += days; /* mktime() knows the months */
	begin->has_day = begin->has_year = true;
	return is_first;
}

/* Reads the rest of "22:00:30" or "9:00 PM". */
static bool read_time(struct begin *begin, int hour)
{
	int minute, second = 0;
	char half;

	begin->at++;
	if (read_number(begin, 2, &minute) != 2)
		return false;
	if (*begin->at == ':') {
		begin->at++;
		if (read_number(begin, 2, &second) != 2)
			return false;
	}
	skip_blanks(begin);
	half = (char)tolower((unsigned char)begin->at[0]);
	if ((half == 'a' || half == 'p') && strncasecmp(begin->at + 1, "m", 1) == 0) {
		if (hour < 1 || hour > 12)
			return false;
		hour = hour % 12 + (half == 'p' ? 12 : 0);
		begin->at += 2;
	}
	return hour < 24 && minute < 60 && second < 60 &&
	       set_time(begin, (hour * 60 + minute) * 60 + second);
}

/* Reads the rest of "11/27" or "11/27/26". */
static bool read_month(struct begin *begin, int month)
{
	char separator = *begin->at++;
	int date, year = begin->now.tm_year - 100;

	if (!read_number(begin, 2, &date))
		return false;
	if (*begin->at == separator) {
		begin->at++;
		begin->has_year = true;
		if (read_number(begin, 2, &year) != 2)
			return false;
	}
	return set_day(begin, 2000 + year, month, date);
}

/* Reads the rest of "2026-11-27". */
static bool read_year(struct begin *begin, int year)
{
	int month, date;

	begin->at++;
	begin->has_year = true;
	return read_number(begin, 2, &month) && *begin->at++ == '-' &&
	       read_number(begin, 2, &date) && set_day(begin, year, month, date);
}

static bool read_digits(struct begin *begin)
{
	int number, year = begin->now.tm_year - 100;
	unsigned digits = read_number(begin, 6, &number);

	if (digits && digits <= 2 && *begin->at == ':')
		return read_time(begin, number);
	if (digits && digits <= 2 && (*begin->at == '/' || *begin->at == '.'))
		return read_month(begin, number);
	if (digits == 4 && *begin->at == '-')
		return read_year(begin, number);
	if (digits == 6) {
		begin->has_year = true;
		year = number % 100;
		number /= 100;
	} else if (digits != 4) {
		return false;
	}
	return set_day(begin, 2000 + year, number / 100, number % 100);
}

static bool read_word(struct begin *begin)
{
	size_t size = count_letters(begin->at), i = 0;

	while (i < ARRAY_SIZE(words) &&
		(size < words[i].least ||
			strncasecmp(begin->at, words[i].text, size) != 0))
		i++;
	if (i == ARRAY_SIZE(words))
		return false;
	begin->at += size;
	switch (words[i].kind) {
	case WORD_TIME:
		return set_time(begin, words[i].value * HOUR_S);
	case WORD_DAY:
		return set_day_after(begin, words[i].value);
	case WORD_WEEKDAY:
		begin->is_weekday = true;
		return set_day_after(begin,
			(words[i].value - begin->now.tm_wday + WEEK_DAYS) % WEEK_DAYS);
	default:
		begin->has_now = true;
		return read_later(begin);
	}
}

/* --- the whole ---------------------------------------------------------------------- */

/* Returns the seconds since 1970 of the day and time that were read; -1: there are none. */
static int64_t begin_seconds(const struct begin *begin)
{
	struct tm day = begin->day;

	day.tm_hour = begin->time_s / HOUR_S;
	day.tm_min = begin->time_s / 60 % 60;
	day.tm_sec = begin->time_s % 60;
	day.tm_isdst = -1;
	return mktime(&day);
}

/* Moves a day that was not given in full to the next one that has not passed. */
static int64_t begin_next(struct begin *begin)
{
	int64_t at_s;

	if (!begin->has_day) {
		begin->day = begin->now;
		if (begin_seconds(begin) <= begin->now_s)
			begin->day.tm_mday++;
	} else if (begin->is_weekday) {
		if (begin_seconds(begin) <= begin->now_s)
			begin->day.tm_mday += WEEK_DAYS;
	} else if (!begin->has_year) {
		/* today counts as one that has not passed, as in Slurm */
		at_s = begin->day.tm_mon * 32 + begin->day.tm_mday;
		if (at_s < begin->now.tm_mon * 32 + begin->now.tm_mday)
			begin->day.tm_year++;
	}
	return begin_seconds(begin);
}

static bool begin_read(struct begin *begin)
{
	do {
		if (!(isdigit((unsigned char)*begin->at) ? read_digits(begin)
							 : read_word(begin)))
			return false;
		/* 2026-11-27T09:00; a letter T before a digit begins no word */
		if ((*begin->at == 'T' || *begin->at == 't' || *begin->at == '-') &&
			isdigit((unsigned char)begin->at[1]))
			begin->at++;
		skip_blanks(begin);
	} while (*begin->at && !begin->has_now);
	return !*begin->at && (!begin->has_now || !(begin->has_day || begin->has_time));
}

int begin_time_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct why *why)
{
	struct begin begin = { .at = text, .now_s = now_ms / 1000 };
	time_t now = (time_t)begin.now_s;
	int64_t at_s = -1;

	skip_blanks(&begin);
	if (localtime_r(&now, &begin.now) && begin_read(&begin)) {
		if (begin.has_now) {
			*ret_ms = now_ms + begin.later_s * 1000;
			return 0;
		}
		at_s = begin_next(&begin);
	}
	if (at_s >= 0) {
		*ret_ms = at_s * 1000;
		return 0;
	}
	why_set(why,
		"'%s' is not a time to begin; write 22:00, 'fri 9:00', tomorrow, 11/27, "
		"2026-11-27T09:00, noon, now+90 (seconds) or now+2hours",
		quote(text).text);
	return -EINVAL;
}
