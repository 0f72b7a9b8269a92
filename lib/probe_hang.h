/*
 * Counts the nvidia-smi that are in state D because the driver hangs, so that no signal ends them.
 * Each holds memory and a pid until the machine is restarted, so gpulease starts no more of them.
 */
#ifndef GPULEASE_PROBE_HANG_H
#define GPULEASE_PROBE_HANG_H

#include "base.h"

enum {
	PROBE_HANGING_MAX = 4,           /* if so many hang no other is started */
	PROBE_HANG_AGAIN_MS = 30 * 1000, /* after so long they are counted again */
};

/*
 * Whether @stat, the text of /proc/PID/stat, is that of a process in state D that runs the
 * program @path or one called nvidia-smi.  Pure.
 */
bool probe_is_hanging(const char *stat, const char *path);

/*
 * Counts the hanging processes of all users that this process can see, up to PROBE_HANGING_MAX.  0
 * where /proc cannot be read.
 */
unsigned probe_count_hanging(const char *path);

#endif
