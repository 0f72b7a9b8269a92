/*
 * A moment of CLOCK_BOOTTIME for poll(2).  The timeout of poll(2) stands still while the machine
 * is suspended, so a wait of hours would end late by the time that the machine slept.  A timer
 * descriptor of CLOCK_BOOTTIME does not.  Only waits of more than a second use it.
 *
 * Where no timer can be made (no descriptor left, a seccomp filter) poll(2) returns once a minute,
 * and its caller looks at the clock again.
 *
 * The timer is closed on exec.  A crash leaves nothing.
 */
#ifndef GPULEASE_ALARM_H
#define GPULEASE_ALARM_H

#include <poll.h>

#include "base.h"

/* Zeroed: there is no timer yet. */
struct alarm {
	int64_t at_ms; /* the moment that the timer is set to; 0: there is no timer */
	int fd;        /* the timer */
};

/*
 * Sets *@ret for a wait until @at_ms (CLOCK_BOOTTIME; INT64_MAX: no moment) and returns the
 * timeout to give to poll(2) with it.  The wait may end early: the caller compares the clock.
 */
MUST_CHECK int alarm_set(struct alarm *alarm, int64_t at_ms, struct pollfd *ret);

void alarm_release(struct alarm *alarm);

#endif
