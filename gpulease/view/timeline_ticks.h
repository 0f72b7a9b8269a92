/*
 * Moments to mark on an axis of time.  Pure, except for $TZ.
 */
#ifndef GPULEASE_TIMELINE_TICKS_H
#define GPULEASE_TIMELINE_TICKS_H

#include "base.h"

enum { TICKS_MAX = 64, TICK_LABEL_SIZE = 16 };

struct timeline_tick {
	int64_t at_ms;
	char label
		[TICK_LABEL_SIZE]; /* "14:00", at midnight "Nov 20"; far apart "Nov 2026" */
};

/*
 * Sets @ticks to round moments of the local time in the period, @most of them at most, and returns
 * how many there are.
 */
size_t timeline_ticks(int64_t from_ms, int64_t until_ms, size_t most,
	struct timeline_tick ticks[TICKS_MAX]);

/* Write a moment of the local time: "Nov 20 14:05", and "2026-11-20 14:05". */
enum { TIMELINE_MOMENT_SIZE = 48 };
void timeline_format_moment(int64_t at_ms, char out[TIMELINE_MOMENT_SIZE]);
void timeline_format_date(int64_t at_ms, char out[TIMELINE_MOMENT_SIZE]);

#endif
