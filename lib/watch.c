#include <errno.h>
#include <limits.h>

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

int watch_wait(struct watch *watch)
{
	int timeout = -1;

	if (watch->until_ms != INT64_MAX)
		timeout = (int)min_i64(
			INT_MAX, max_i64(0, watch->until_ms - clock_boot_ms()));
	if (poll(watch->fds, watch->count, timeout) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

void watch_release(struct watch *watch)
{
	free(watch->fds);
	*watch = WATCH_NONE;
}
