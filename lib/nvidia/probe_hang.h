/*
 * Counts the nvidia-smi processes in state D, which no signal ends because the driver hangs.  Each
 * of them holds memory and a pid until the machine is restarted, so gpulease stops starting more.
 */
#ifndef GPULEASE_PROBE_HANG_H
#define GPULEASE_PROBE_HANG_H

#include "owner.h"

enum {
	PROBE_HANGING_MAX = 4,           /* if so many hang, no other is started */
	PROBE_HANG_AGAIN_MS = 30 * 1000, /* time until they are counted again */
};

/*
 * Whether @stat shows a hanging process: it is in state D, runs the program @path or one called
 * nvidia-smi, and was started before the tick @before.  The age matters because an nvidia-smi that
 * works is in state D for moments, too, but ends within its time limit.  Pure.
 */
bool probe_is_hanging(const struct process_stat *stat, const char *path, uint64_t before);

/*
 * Counts the hanging processes of all users that are older than @age_ms milliseconds, as far as
 * this process can see them, up to PROBE_HANGING_MAX.  Returns 0 if /proc cannot be read.
 */
unsigned probe_count_hanging(const char *path, int64_t age_ms);

#endif
