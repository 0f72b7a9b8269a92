#include <errno.h>
#include <strings.h>

#include "parse.h"

enum { SECOND_MS = 1000, MINUTE_MS = 60 * SECOND_MS, HOUR_MS = 60 * MINUTE_MS };
static const int64_t DAY_MS = 24 * (int64_t)HOUR_MS;
static const int64_t LONGEST_MS = 3650 * 24 * (int64_t)HOUR_MS;
static const uint64_t LARGEST_MIB = UINT64_C(1) << 30;

struct quoted quote_bytes(const char *bytes, size_t size)
{
	struct quoted quoted;
	struct text text = text_on(quoted.text, sizeof(quoted.text) - 3);

	text_add_printable(&text, bytes, size);
	if (text.cut) {
		text.size = sizeof(quoted.text);
		text_add(&text, "\xe2\x80\xa6");
	}
	return quoted;
}

struct quoted quote(const char *text)
{
	return quote_bytes(text, strlen(text));
}

/* --- numbers ----------------------------------------------------------------------- */

/*
 * Reads the digits at *@at and moves *@at to the byte after them.  Returns false if there is no
 * digit.  A number that needs more than 64 bits becomes UINT64_MAX, which is above every limit.
 */
static bool read_digits(const char **at, uint64_t *ret)
{
	uint64_t value = 0;

	if (!is_digit(**at))
		return false;
	for (; is_digit(**at); (*at)++) {
		uint64_t digit = (uint64_t)(**at - '0');

		if (__builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, digit, &value))
			value = UINT64_MAX;
		/* no further digit can change that: skip them */
		if (value == UINT64_MAX) {
			*at += strspn(*at, "0123456789");
			break;
		}
	}
	*ret = value;
	return true;
}

int parse_u64(const char *text, uint64_t max, uint64_t *ret, struct why *why)
{
	const char *at = text;
	uint64_t value;

	if (!read_digits(&at, &value) || *at) {
		why_set(why, "'%s' is not a number; write a whole number in digits",
			quote(text).text);
		return -EINVAL;
	}
	if (value > max) {
		why_set(why, "'%s' is too large; the most is %llu", quote(text).text,
			(unsigned long long)max);
		return -EINVAL;
	}
	*ret = value;
	return 0;
}

/* --- numbers with a unit ----------------------------------------------------------- */

struct unit {
	const char *suffix;
	uint64_t scale;
};

static const struct unit time_units[] = {
	{ "ms", 1 },
	{ "s", SECOND_MS },
	{ "m", MINUTE_MS },
	{ "h", HOUR_MS },
	{ "d", UINT64_C(24) * HOUR_MS },
};

/* in KiB, so that every scale is a whole number */
static const struct unit size_units[] = {
	{ "k", 1 },
	{ "kb", 1 },
	{ "kib", 1 },
	{ "m", 1 << 10 },
	{ "mb", 1 << 10 },
	{ "mib", 1 << 10 },
	{ "g", 1 << 20 },
	{ "gb", 1 << 20 },
	{ "gib", 1 << 20 },
	{ "t", 1 << 30 },
	{ "tb", 1 << 30 },
	{ "tib", 1 << 30 },
};

/* Returns the scale of the unit @suffix; 0 if the table does not have it. */
static uint64_t unit_scale(const struct unit *units, size_t count, const char *suffix,
	int (*compare)(const char *, const char *))
{
	for (size_t i = 0; i < count; i++)
		if (compare(units[i].suffix, suffix) == 0)
			return units[i].scale;
	return 0;
}

/* The number whole + part / divisor. */
struct decimal {
	uint64_t whole, part, divisor;
};

/* Reads `22` or `1.5` at *@at.  Digits of the fraction after the sixth are ignored. */
static bool read_decimal(const char **at, struct decimal *ret)
{
	struct decimal d = { .divisor = 1 };

	if (!read_digits(at, &d.whole))
		return false;
	if (**at == '.') {
		(*at)++;
		if (!is_digit(**at))
			return false;
		for (; is_digit(**at); (*at)++) {
			if (d.divisor == 1000000)
				continue;
			d.part = d.part * 10 + (uint64_t)(**at - '0');
			d.divisor *= 10;
		}
	}
	*ret = d;
	return true;
}

/* Sets *@ret to @d times @scale, rounded up.  Returns false if that is above @max. */
static bool decimal_scale(
	const struct decimal *d, uint64_t scale, uint64_t max, uint64_t *ret)
{
	uint64_t value, part = (d->part * scale + d->divisor - 1) / d->divisor;

	if (__builtin_mul_overflow(d->whole, scale, &value) ||
		__builtin_add_overflow(value, part, &value) || value > max)
		return false;
	*ret = value;
	return true;
}

/* --- durations --------------------------------------------------------------------- */

enum span { SPAN_GOOD, SPAN_BAD, SPAN_TOO_LONG };

/* Reads a unit of time at *@at, moves *@at on, and returns its scale; 0: no unit. */
static uint64_t read_time_unit(const char **at)
{
	size_t size = strcspn(*at, "0123456789");
	char suffix[4] = "";

	if (size >= sizeof(suffix))
		return 0;
	memcpy(suffix, *at, size);
	*at += size;
	return unit_scale(time_units, ARRAY_SIZE(time_units), suffix, strcmp);
}

/*
 * Reads a time span.  It is a list of whole numbers, each with a unit and the largest unit first
 * (`1h30m`); or one number, perhaps with a fraction, and its unit.  The unit of a bare number is
 * @bare_scale; with @whole a bare number must not have a fraction.
 */
static enum span read_span(
	const char *text, uint64_t bare_scale, bool whole, int64_t *ret_ms)
{
	uint64_t last = UINT64_MAX, sum = 0, ms;
	const char *at = text;

	do {
		uint64_t scale = bare_scale;
		bool is_bare, is_alone;
		struct decimal d;

		if (!read_decimal(&at, &d))
			return SPAN_BAD;
		is_bare = !*at && last == UINT64_MAX;
		if (!is_bare)
			scale = read_time_unit(&at);
		/* only a number that stands alone may have a fraction */
		is_alone = !*at && last == UINT64_MAX;
		if (!scale || scale >= last ||
			(d.divisor > 1 && (!is_alone || (is_bare && whole))))
			return SPAN_BAD;
		if (!decimal_scale(&d, scale, (uint64_t)LONGEST_MS - sum, &ms))
			return SPAN_TOO_LONG;
		sum += ms;
		last = scale;
	} while (*at);
	*ret_ms = (int64_t)sum;
	return SPAN_GOOD;
}

/* Returns 0 for a good span; else sets the reason and returns -EINVAL. */
static int span_result(enum span span, const char *text, const char *what,
	const char *allowed, struct why *why)
{
	if (span == SPAN_GOOD)
		return 0;
	if (span == SPAN_TOO_LONG)
		why_set(why, "'%s' is longer than ten years", quote(text).text);
	else
		why_set(why, "'%s' is not a %s; write %s", quote(text).text, what,
			allowed);
	return -EINVAL;
}

int parse_duration_ms(const char *text, int64_t *ret_ms, struct why *why)
{
	return span_result(read_span(text, SECOND_MS, false, ret_ms), text, "duration",
		"90s, 15m, 2h or 1d (a bare number is seconds)", why);
}

/*
 * Reads D-H[:M[:S]], H:M:S or M:S.  Two numbers are minutes and seconds; after days they are hours
 * and minutes.
 */
static enum span read_clock(const char *text, int64_t *ret_ms)
{
	uint64_t field[3] = { 0 }, days = 0, seconds;
	const char *at = text, *dash = strchr(text, '-');
	size_t count = 0;

	if (dash && (!read_digits(&at, &days) || at++ != dash))
		return SPAN_BAD;
	do {
		if (count == ARRAY_SIZE(field) || !read_digits(&at, &field[count]))
			return SPAN_BAD;
		if (field[count++] > (uint64_t)LONGEST_MS)
			return SPAN_TOO_LONG;
	} while (*at == ':' && at++);
	if (*at)
		return SPAN_BAD;
	if (!dash && count == 2) { /* M:S */
		field[2] = field[1];
		field[1] = field[0];
		field[0] = 0;
	}
	if (days > (uint64_t)(LONGEST_MS / DAY_MS))
		return SPAN_TOO_LONG;
	/* no overflow: each field is below 2^39 */
	seconds = ((days * 24 + field[0]) * 60 + field[1]) * 60 + field[2];
	if (seconds > (uint64_t)LONGEST_MS / SECOND_MS)
		return SPAN_TOO_LONG;
	*ret_ms = (int64_t)seconds * SECOND_MS;
	return SPAN_GOOD;
}

int parse_time_limit_ms(const char *text, int64_t *ret_ms, struct why *why)
{
	enum span span;

	if (strcasecmp(text, "UNLIMITED") == 0 || strcasecmp(text, "INFINITE") == 0) {
		*ret_ms = 0;
		return 0;
	}
	if (strpbrk(text, "-:"))
		span = read_clock(text, ret_ms);
	else
		span = read_span(text, MINUTE_MS, true, ret_ms);
	return span_result(span, text, "time limit",
		"minutes, H:M:S, D-H:M:S, or 90s, 15m, 2h, 1d", why);
}

void format_duration(int64_t ms, char out[DURATION_SIZE])
{
	long long s = ms / SECOND_MS, m = s / 60, h = m / 60, d = h / 24;

	if (s < 1)
		(void)snprintf(out, DURATION_SIZE, "<1s");
	else if (m < 1)
		(void)snprintf(out, DURATION_SIZE, "%llds", s);
	else if (m < 10)
		(void)snprintf(out, DURATION_SIZE, "%lldm%02llds", m, s % 60);
	else if (h < 1)
		(void)snprintf(out, DURATION_SIZE, "%lldm", m);
	else if (d < 1)
		(void)snprintf(out, DURATION_SIZE, "%lldh%02lldm", h, m % 60);
	else
		(void)snprintf(out, DURATION_SIZE, "%lldd%lldh", d, h % 24);
}

void format_exact_duration(int64_t ms, char out[DURATION_SIZE])
{
	size_t i = ARRAY_SIZE(time_units) - 1;

	if (!ms) {
		text_copy(out, DURATION_SIZE, "0s");
		return;
	}
	/* ends at the latest with 1 ms */
	while (ms % (int64_t)time_units[i].scale)
		i--;
	(void)snprintf(out, DURATION_SIZE, "%lld%s",
		(long long)(ms / (int64_t)time_units[i].scale), time_units[i].suffix);
}

/* --- sizes ------------------------------------------------------------------------- */

int parse_size_mib(const char *text, uint64_t *ret_mib, struct why *why)
{
	const char *at = text;
	struct decimal d;
	uint64_t kib, scale = 0;

	if (read_decimal(&at, &d))
		scale = *at ? unit_scale(
				      size_units, ARRAY_SIZE(size_units), at, strcasecmp)
			    : 1 << 10;
	if (!scale) {
		why_set(why, "'%s' is not a size; write 8000M, 22G or 1.5GiB",
			quote(text).text);
		return -EINVAL;
	}
	if (!decimal_scale(&d, scale, LARGEST_MIB << 10, &kib)) {
		why_set(why, "'%s' is too large; the most is 1024T", quote(text).text);
		return -EINVAL;
	}
	if (!kib) {
		why_set(why, "'%s' is no memory; the least is 1M", quote(text).text);
		return -EINVAL;
	}
	*ret_mib = (kib + 1023) >> 10;
	return 0;
}

void text_add_mib(uint64_t mib, struct text *out)
{
	bool is_whole = mib % 1024 == 0;

	text_addf(out,
		!mib       ? "0"
		: is_whole ? "%lluG"
			   : "%lluM",
		(unsigned long long)(is_whole ? mib / 1024 : mib));
}

void format_gib(uint64_t mib, char out[GIB_TEXT_SIZE])
{
	uint64_t tenths = (mib * 10 + 512) / 1024;

	(void)snprintf(out, GIB_TEXT_SIZE, "%llu.%u", (unsigned long long)(tenths / 10),
		(unsigned)(tenths % 10));
}
