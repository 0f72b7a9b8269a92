/*
 * Reads a date or time of day as users write it for --since and --until, and writes one.  Local
 * times follow $TZ.
 */
#ifndef GPULEASE_DATE_TIME_H
#define GPULEASE_DATE_TIME_H

#include "text.h"

/*
 * Converts @text to CLOCK_REALTIME milliseconds; @now_ms is the current time:
 *
 *	2026-11-20, 2026-11-20T10:30, 2026-11-20 10:30:05	a date alone means its midnight
 *	10:30, 10:30:05						today
 *	now, today, yesterday					the last two mean midnight
 *	7d, 90m, 1.5h						that long ago; needs a unit
 *	@1795170600						seconds since 1970
 *
 * Years are 1970 to 9999.  When clocks are set back, a time that occurs twice means its first
 * occurrence; when they are set forward, a time that they skip is moved forward as they are.
 * Returns 0, or -EINVAL; @why then lists the forms.  Pure, except for $TZ.
 */
MUST_CHECK int date_time_parse(
	const char *text, int64_t now_ms, int64_t *ret_ms, struct why *why);

/* How a time is written: "10:30", with these parts added. */
enum {
	DATE_TIME_DAY = 1u << 0,     /* "2026-11-20 10:30" */
	DATE_TIME_SECONDS = 1u << 1, /* "10:30:05" */
};

/*
 * Appends the local time @at_ms of CLOCK_REALTIME with the @parts.  Appends nothing if the local
 * zone does not know it.  Pure, except for $TZ.
 */
void date_time_add(int64_t at_ms, unsigned parts, struct text *out);

/*
 * As date_time_add(): with seconds if @at_ms is less than a day before @now_ms, else with the day,
 * also if it is after @now_ms.
 */
void date_time_add_since(int64_t at_ms, int64_t now_ms, struct text *out);

/* As date_time_add() if @at_ms is on the day of @now_ms; otherwise appends "2026-11-20 10:30". */
void date_time_add_near(int64_t at_ms, int64_t now_ms, unsigned parts, struct text *out);

#endif
