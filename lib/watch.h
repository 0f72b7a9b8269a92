/*
 * One poll over everything a waiter waits for: descriptors and a moment.  Collected anew for
 * each wait; all of it is level-triggered, so what happens between looking and waiting is not
 * lost, and a process that was stopped meanwhile finds it when it goes on.
 */
#ifndef GPULEASE_WATCH_H
#define GPULEASE_WATCH_H

#include "alarm.h"

struct watch {
	struct pollfd *fds;
	size_t count, room;
	int64_t until_ms; /* CLOCK_BOOTTIME, which counts a suspend; INT64_MAX: no moment */
	struct alarm alarm;
};

#define WATCH_NONE ((struct watch){ .fds = NULL })

/* Begins a collection; the memory of the last one is used again. */
void watch_begin(struct watch *watch);

/* Adds @fd (nothing where it is -1), ready on @events, POLLHUP or POLLERR.  0 or -ENOMEM. */
MUST_CHECK int watch_add(struct watch *watch, int fd, short events);

/* Wakes at @at_ms at the latest. */
void watch_until(struct watch *watch, int64_t at_ms);

/* Whether watch_wait() would return at once, or a signal came: 1, 0, or a negative errno. */
MUST_CHECK int watch_look(const struct watch *watch);

/* Waits.  0 once something is ready, the moment has come, or a signal; else a negative errno. */
MUST_CHECK int watch_wait(struct watch *watch);

/*
 * Waits for @most_ms at most; -1: for any time.  As watch_wait(), or WATCH_NOTHING: nothing has
 * happened in that time.
 */
enum { WATCH_NOTHING = 1 };
MUST_CHECK int watch_wait_for(struct watch *watch, int most_ms);

void watch_release(struct watch *watch);

#endif
