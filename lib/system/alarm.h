/*
 * A time of CLOCK_BOOTTIME at which poll(2) wakes.  The timeout of poll(2) does not run while the
 * machine is suspended, so a wait of hours would end too late by the length of the suspend.  A
 * timer descriptor of CLOCK_BOOTTIME also counts the suspend.  Only waits of more than a second
 * use it.
 *
 * If no timer can be created (no free descriptor, a seccomp filter), poll(2) wakes once a minute
 * and its caller reads the clock again.
 *
 * The timer is close-on-exec.  A crash leaves nothing.
 */
#ifndef GPULEASE_ALARM_H
#define GPULEASE_ALARM_H

#include <poll.h>

#include "base.h"

/* A zeroed struct has no timer. */
struct alarm {
	int64_t at_ms; /* the time that the timer is set to; 0: there is no timer */
	int fd;        /* the timer, unless ->at_ms is 0 */
};

/*
 * Prepares a wait until @at_ms (CLOCK_BOOTTIME; INT64_MAX: without end).  Sets *@ret to the entry
 * to add to the poll(2), and returns the timeout for it.  The wait may end early, so the caller
 * has to compare the clock.
 */
MUST_CHECK int alarm_set(struct alarm *alarm, int64_t at_ms, struct pollfd *ret);

void alarm_release(struct alarm *alarm);

#endif
