/*
 * --metrics: prints metrics for Prometheus, or writes them to a file.
 *
 * The file is replaced as a whole, by a temporary file in its folder and rename(2), so no reader
 * sees half of it.  A process that is killed meanwhile leaves `.gpulease-metrics.XXXXXX`, which
 * node_exporter does not read, because its name does not end in `.prom`.
 */
#ifndef GPULEASE_METRICS_H
#define GPULEASE_METRICS_H

#include "settings.h"

/* Returns the exit status, after a message if it is not EXIT_DONE. */
int metrics_main(const struct settings *settings);

#endif
