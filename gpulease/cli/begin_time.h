/*
 * Reads the time at which a job is to begin, as users write it for --begin.  Local times follow
 * $TZ.
 */
#ifndef GPULEASE_BEGIN_TIME_H
#define GPULEASE_BEGIN_TIME_H

#include "text.h"

/*
 * Converts @text to CLOCK_REALTIME milliseconds; @now_ms is the current time.  The forms are those
 * of Slurm, and days of the week; case does not matter:
 *
 *	now, now+90, now+2hours		seconds, minutes, hours, days, weeks, or their beginnings
 *	22:00, 22:00:30, 9:00pm		the next one
 *	midnight, noon, fika, teatime	0:00, 12:00, 15:00, 16:00
 *	2026-11-27, 11/27, 11/27/26, 11.27, 1127, 112726, today, tomorrow, fri, friday
 *	fri 9:00, 2026-11-27T09:00, 16:00 tomorrow
 *
 * A day alone means its midnight.  A day without a year is the next one, and so is a day of the
 * week that has passed.  When clocks are changed, mktime(3) decides.  The time may have passed.
 * Returns 0, or -EINVAL; @why then lists the forms.  Pure, except for $TZ.
 */
MUST_CHECK int begin_time_parse(
	const char *text, int64_t now_ms, int64_t *ret_ms, struct why *why);

#endif
