/*
 * --metrics
 */
#ifndef GPULEASE_METRICS_H
#define GPULEASE_METRICS_H

#include "settings.h"

/* Returns the exit status, after a message if it is not EXIT_DONE. */
int metrics_main(const struct settings *settings);

#endif
