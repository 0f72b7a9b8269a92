/*
 * Parts of --status of a cluster.
 */
#ifndef GPULEASE_ENGINE_LOOK_H
#define GPULEASE_ENGINE_LOOK_H

#include "settings.h"

/* Shows the jobs that the operands of --status name.  Returns the exit status. */
int engine_status_jobs(const struct settings *settings);

#endif
