/*
 * A moment as people write it, behind --since and --until.  Local times follow $TZ.
 */
#ifndef GPULEASE_WHEN_H
#define GPULEASE_WHEN_H

#include "text.h"

/*
 * Reads @text, as of @now_ms, into CLOCK_REALTIME milliseconds:
 *
 *	2026-11-20, 2026-11-20T10:30, 2026-11-20 10:30:05	a date alone is its midnight
 *	10:30, 10:30:05						today
 *	now, today, yesterday					midnight, but for the first
 *	7d, 90m, 1.5h						so long ago; with a unit
 *	@1795170600						seconds since 1970
 *
 * Years from 1970 to 9999.  What the clocks show twice is the first time; what they skip is as
 * much later as they skip.  0, or -EINVAL with what is allowed in @why.  Pure, but for $TZ.
 */
MUST_CHECK int when_parse(
	const char *text, int64_t now_ms, int64_t *ret_ms, struct why *why);

#endif
