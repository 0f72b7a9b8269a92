#include <sys/timerfd.h>
#include <unistd.h>

#include "alarm.h"
#include "clock.h"

enum {
	SHORT_MS = 1000,        /* the longest wait without a timer */
	RECHECK_MS = 60 * 1000, /* without a timer a long wait is cut into such pieces */
};

/* Sets the timer to @at_ms.  Returns false if that fails. */
static bool alarm_set_timer(struct alarm *alarm, int64_t at_ms)
{
	struct itimerspec at = { .it_value = { .tv_sec = at_ms / 1000,
					 .tv_nsec = at_ms % 1000 * 1000000 } };

	if (alarm->at_ms == at_ms)
		return true;
	if (!alarm->at_ms)
		alarm->fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (alarm->fd < 0)
		return false;
	alarm->at_ms = at_ms;
	if (timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &at, NULL) == 0)
		return true;
	alarm_release(alarm);
	return false;
}

int alarm_set(struct alarm *alarm, int64_t at_ms, struct pollfd *ret)
{
	int64_t left_ms;

	*ret = (struct pollfd){ .fd = -1 };
	if (at_ms == INT64_MAX)
		return -1;
	left_ms = max_i64(0, at_ms - clock_boot_ms());
	if (left_ms <= SHORT_MS)
		return (int)left_ms;
	if (!alarm_set_timer(alarm, at_ms))
		return (int)min_i64(left_ms, RECHECK_MS);
	*ret = (struct pollfd){ .fd = alarm->fd, .events = POLLIN };
	return -1;
}

void alarm_release(struct alarm *alarm)
{
	if (alarm->at_ms)
		(void)close(alarm->fd);
	alarm->at_ms = 0;
}
