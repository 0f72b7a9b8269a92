/*
 * The state directory for the local jobs that stand for jobs of Slurm: `state` in the folder of
 * this user for the cluster, or, where that is on a file system that several machines share,
 * slurm-CLUSTER in the user's directory of this machine (statedir_find_local()).
 */
#ifndef GPULEASE_ENGINE_BATCH_PLACE_H
#define GPULEASE_ENGINE_BATCH_PLACE_H

#include <limits.h>

#include "base.h"

/* Makes it, and writes its path.  Returns 0, or EXIT_MISUSE after a message. */
MUST_CHECK int engine_batch_place(char out[PATH_MAX]);

#endif
