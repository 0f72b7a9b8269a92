/*
 * The two clocks of gpulease, both in milliseconds.  The protocol compares CLOCK_BOOTTIME, which
 * no administrator can set and which also counts the time that the machine is suspended.
 * CLOCK_REALTIME is for times that people read.
 */
#ifndef GPULEASE_CLOCK_H
#define GPULEASE_CLOCK_H

#include "base.h"

int64_t clock_boot_ms(void);
int64_t clock_real_ms(void);

/* Returns the age of @then_ms at @now_ms; INT64_MAX, very old, for a time in the future. */
static inline int64_t clock_age_ms(int64_t now_ms, int64_t then_ms)
{
	int64_t age_ms;

	return then_ms > now_ms || __builtin_sub_overflow(now_ms, then_ms, &age_ms)
		       ? INT64_MAX
		       : age_ms;
}

#endif
