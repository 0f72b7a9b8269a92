/*
 * Windows: times in which GPUs are kept for some users, or for none.  A pause that begins later,
 * or that exempts users, is a window.  The file is gpu/windows, one record for each GPU of a
 * window; the records of one window have its number.
 *
 * A GPU is named by its UUID and times are CLOCK_REALTIME, because a window outlives a reboot.
 *
 * The file is replaced as a whole under the flock of the folder gpu/.  So the time stamp of the
 * folder, which each turn compares anyway, tells readers that the windows have changed.  Without
 * windows there is no file, and a process looks for it once.  A crash leaves the old windows or
 * the new ones, and perhaps a temporary file, which the next writer replaces.
 *
 * A window that is over has no effect.  The next process that writes the file leaves it out.
 */
#ifndef GPULEASE_WINDOWS_H
#define GPULEASE_WINDOWS_H

#include "lease.h"

enum {
	WINDOWS_MAX = 512,
	WINDOW_USERS_MAX = 8,
	WINDOW_USERS_SIZE = WINDOW_USERS_MAX * 11
};

struct window {
	uint64_t id;
	char uuid[UUID_SIZE];
	int64_t from_ms, until_ms;   /* CLOCK_REALTIME; until 0: until it is removed */
	char but[WINDOW_USERS_SIZE]; /* uids of users whom it does not bind, "1000,1001" */
	char by[USER_SIZE];
	char extra[48];
	char reason[REASON_SIZE];

	/* not in the record: of the reader, see window_place() */
	int slot;                 /* of the GPU; -1: unknown */
	int64_t begin_ms, end_ms; /* CLOCK_BOOTTIME; end INT64_MAX: not known */
};

struct windows {
	struct window *all;
	size_t count, room;
	size_t broken; /* records that cannot be read; they have no effect */
};

#define WINDOWS_NONE ((struct windows){ .all = NULL })

/* Whether the window does not bind user @uid.  Pure. */
bool window_exempts(const struct window *window, uint32_t uid);

/* Sets ->slot, ->begin_ms and ->end_ms for a reader at these times of the two clocks.  Pure. */
void window_place(struct window *window, int slot, int64_t real_ms, int64_t boot_ms);

/*
 * Returns when the first window begins that is not over at @now_ms and keeps a GPU of @gpus from
 * user @uid; INT64_MAX: there is none.  The windows are placed.  Pure.
 */
int64_t windows_begin_ms(const struct windows *windows, const struct gpuset *gpus,
	uint32_t uid, int64_t now_ms);

/*
 * Reads the windows.  Returns 0, also if there are none, or a negative errno; then @windows is
 * unchanged.  The caller releases @windows.
 */
MUST_CHECK int windows_read(const struct statedir *dir, struct windows *windows);
void windows_release(struct windows *windows);

/*
 * Takes the lock that windows_write() needs, at most until @until_ms (CLOCK_BOOTTIME).  Returns 0,
 * -EWOULDBLOCK, or another negative errno.
 */
MUST_CHECK int windows_lock(const struct statedir *dir, int64_t until_ms);
void windows_unlock(const struct statedir *dir);

/* Adds a copy of @window.  Returns 0, -ENOMEM, or -E2BIG: there are too many. */
MUST_CHECK int windows_add(struct windows *windows, const struct window *window);

/* Returns a number that no window has. */
uint64_t windows_next_id(const struct windows *windows);

/*
 * Removes the windows of the GPU @uuid (NULL: of none), and those that are over at @real_ms.
 */
void windows_remove(struct windows *windows, const char *uuid, int64_t real_ms);

/*
 * Replaces the file and waits until that is on the disk.  The caller holds the lock.  Returns 0 or
 * a negative errno.
 */
MUST_CHECK int windows_write(const struct statedir *dir, const struct windows *windows);

#endif
