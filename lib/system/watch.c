#include <errno.h>

#include "array.h"
#include "clock.h"
#include "watch.h"

void watch_begin(struct watch *watch)
{
	watch->count = 0;
	watch->until_ms = INT64_MAX;
}

int watch_add(struct watch *watch, int fd, short events)
{
	struct pollfd *fds;

	if (fd < 0)
		return 0;
	fds = array_grow(watch->fds, sizeof(*fds), watch->count, &watch->room);
	if (!fds)
		return -ENOMEM;
	watch->fds = fds;
	watch->fds[watch->count++] = (struct pollfd){ .fd = fd, .events = events };
	return 0;
}

void watch_until(struct watch *watch, int64_t at_ms)
{
	watch->until_ms = min_i64(watch->until_ms, at_ms);
}

int watch_look(const struct watch *watch)
{
	int r;

	if (watch->until_ms <= clock_boot_ms())
		return 1;
	r = poll(watch->fds, watch->count, 0);
	return r < 0 && errno != EINTR ? -errno : r != 0;
}

int watch_wait_for(struct watch *watch, int most_ms)
{
	struct pollfd *fds =
		array_grow(watch->fds, sizeof(*fds), watch->count, &watch->room);
	int timeout, r;

	if (!fds)
		return -ENOMEM;
	watch->fds = fds;
	/* one entry more than the caller has added, for the alarm */
	timeout = alarm_set(&watch->alarm, watch->until_ms, &fds[watch->count]);
	if (most_ms >= 0 && (timeout < 0 || timeout > most_ms))
		timeout = most_ms;
	r = poll(fds, watch->count + 1, timeout);
	if (r < 0 && errno != EINTR)
		return -errno;
	return r == 0 && timeout == most_ms ? WATCH_NOTHING : 0;
}

int watch_wait(struct watch *watch)
{
	int r = watch_wait_for(watch, -1);

	return r < 0 ? r : 0;
}

void watch_release(struct watch *watch)
{
	free(watch->fds);
	alarm_release(&watch->alarm);
	*watch = WATCH_NONE;
}
