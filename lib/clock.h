/*
 * The two clocks of gpulease.  The protocol compares CLOCK_BOOTTIME, which no administrator
 * sets and which runs on while the machine sleeps; CLOCK_REALTIME is for what people read.
 * Both in milliseconds.
 */
#ifndef GPULEASE_CLOCK_H
#define GPULEASE_CLOCK_H

#include "base.h"

int64_t clock_boot_ms(void);
int64_t clock_real_ms(void);

/* How long ago @then_ms was at @now_ms; a time from the future counts as old: INT64_MAX. */
static inline int64_t clock_age_ms(int64_t now_ms, int64_t then_ms)
{
	return then_ms > now_ms ? INT64_MAX : now_ms - then_ms;
}

#endif
