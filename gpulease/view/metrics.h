/*
 * --metrics: prints metrics for Prometheus, or writes them to a file.
 *
 * The file is replaced as a whole (replace_file.h), so no reader sees half of it.  What a process
 * that is killed leaves is not read by node_exporter, because its name does not end in `.prom`.
 */
#ifndef GPULEASE_METRICS_H
#define GPULEASE_METRICS_H

#include "settings.h"

/* Returns the exit status, after a message if it is not EXIT_DONE. */
int metrics_main(const struct settings *settings);

#endif
