/*
 * The order of a timeline that is being made: of its users and rows, and where each span lies in
 * its row.  Pure but for memory.
 */
#ifndef GPULEASE_TIMELINE_ORDER_H
#define GPULEASE_TIMELINE_ORDER_H

#include "timeline_spans.h"

/*
 * Sorts the users, the rows and the spans, and places the spans so that those of a row do not lie
 * over each other.  Leaves out GPUs that are divided, unless a job had all of one.  Returns 0 or
 * -ENOMEM.
 */
MUST_CHECK int timeline_order(struct timeline *timeline);

#endif
