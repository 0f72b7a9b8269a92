/*
 * Counting nvidia-smi that no signal ends: in state D, because the driver hangs.  Each holds
 * memory and a process number until the machine is restarted, so gpulease adds no more to them.
 */
#ifndef GPULEASE_PROBE_HANG_H
#define GPULEASE_PROBE_HANG_H

#include "base.h"

enum {
	PROBE_HANGING_MAX = 4,           /* with so many no other is started */
	PROBE_HANG_AGAIN_MS = 30 * 1000, /* and they are counted again after that */
};

/*
 * Whether @stat, the text of /proc/PID/stat, is that of a process in state D that runs the
 * program @path or one called nvidia-smi.  Pure.
 */
bool probe_is_hanging(const char *stat, const char *path);

/*
 * Counts the processes, of all users, that this process can see hanging; no further than
 * PROBE_HANGING_MAX.  0 where /proc cannot be read.
 */
unsigned probe_count_hanging(const char *path);

#endif
