/*
 * One poll(2) over everything that a process waits for: descriptors and a time.  They are collected
 * anew for each wait.  All of them are level-triggered: an event between reading the state and
 * waiting is not lost, not even if the process is stopped in between.
 */
#ifndef GPULEASE_WATCH_H
#define GPULEASE_WATCH_H

#include "alarm.h"

struct watch {
	struct pollfd *fds;
	size_t count, room;
	int64_t until_ms; /* CLOCK_BOOTTIME; INT64_MAX: without end */
	struct alarm alarm;
};

#define WATCH_NONE ((struct watch){ .fds = NULL })

/* Begins a new collection, in the memory of the last one. */
void watch_begin(struct watch *watch);

/*
 * Adds @fd, to wake on @events, POLLHUP and POLLERR; does nothing if it is -1.  Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int watch_add(struct watch *watch, int fd, short events);

/* Lets the wait end at @at_ms at the latest. */
void watch_until(struct watch *watch, int64_t at_ms);

/*
 * Returns 1 if watch_wait() would return at once or a signal has arrived, 0 if it would wait, or a
 * negative errno.
 */
MUST_CHECK int watch_look(const struct watch *watch);

/*
 * Waits until a descriptor is ready, the time has come or a signal has arrived.  Returns 0 or a
 * negative errno.
 */
MUST_CHECK int watch_wait(struct watch *watch);

/*
 * Like watch_wait(), but for at most @most_ms milliseconds; -1: without end.  Returns WATCH_NOTHING
 * if nothing has happened in that time.
 */
enum watch_outcome { WATCH_NOTHING = 1 };
MUST_CHECK int watch_wait_for(struct watch *watch, int most_ms);

void watch_release(struct watch *watch);

#endif
