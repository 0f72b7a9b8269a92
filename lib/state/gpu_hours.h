/*
 * The file `usage`: how many GPU-hours each user had on each day, for fair-share.  The process that
 * records the end of a lease adds the lease's time; the configuration says whether it does
 * (->counts_usage of struct statedir).
 *
 * A record of 512 bytes has the time of one user on one day (UTC).  Several records may have the
 * same user and day: readers add them.  A writer adds to the first of them, in place, under the
 * flock of the file.  If it cannot have the lock in time, it appends a record, and once the user
 * and day have several, adds to the last of them.  So no process waits for a stopped one, a process
 * that keeps the lock makes nobody's time disappear, and no user can fill the file.  Records of
 * days that no longer count are used again.  A damaged record is skipped.  A crash leaves the
 * record as it was before or after.
 */
#ifndef GPULEASE_GPU_HOURS_H
#define GPULEASE_GPU_HOURS_H

#include "lease.h"

/* The longest time for which fair-share may look back, and the most records in the file. */
enum { GPU_HOURS_DAYS = 30, GPU_HOURS_RECORDS = 8192 };

/* Opens the file, and makes it if it is missing.  Returns its descriptor or a negative errno. */
MUST_CHECK int gpu_hours_open(const struct statedir *dir);

/*
 * Adds the time of @lease up to @end_ms (CLOCK_BOOTTIME), to each of the days on which it ran.
 * Returns 0 or a negative errno.
 */
MUST_CHECK int gpu_hours_add(int fd, const struct lease *lease, int64_t end_ms);

/* What a user had, in GPU-milliseconds, and how many records of the file are damaged. */
struct gpu_hours {
	uint64_t gpu_ms;
	size_t broken;
};

/*
 * Reads what user @uid had on the last @days days, of which today is one.  Without a file that is
 * nothing.  Returns 0 or a negative errno.
 */
MUST_CHECK int gpu_hours_read(
	const struct statedir *dir, uint32_t uid, unsigned days, struct gpu_hours *ret);

/* Returns @ms of GPUs in GPU-milliseconds; a part of 0 % counts as a GPU. */
uint64_t gpu_hours_weigh(unsigned gpus, unsigned percent, int64_t ms);

#endif
