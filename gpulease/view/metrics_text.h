/*
 * A machine as metrics for Prometheus.  Pure but for memory.
 *
 * The text is OpenMetrics 1.0 and at the same time the Prometheus text format 0.0.4, which is all
 * that the textfile collector of node_exporter reads: every type is `gauge`, which both have, and
 * the lines `# UNIT` and `# EOF` are comments in 0.0.4.  There are no timestamps, which the
 * collector refuses.  No sample comes twice: a repeated sample makes the whole text invalid.
 */
#ifndef GPULEASE_METRICS_TEXT_H
#define GPULEASE_METRICS_TEXT_H

#include <stdio.h>

#include "machine_read.h"

/*
 * Prints @machine to @out.  A value that is not known has no sample.  Returns 0, or -ENOMEM before
 * anything is printed.
 */
MUST_CHECK int metrics_text_print(const struct machine *machine, FILE *out);

#endif
