/*
 * The waiting tickets of a view (view.h): the plan over all of them, as every waiter makes it for
 * itself, with the reason why each waits and an estimate of its start.
 */
#ifndef GPULEASE_VIEW_QUEUE_H
#define GPULEASE_VIEW_QUEUE_H

#include "state_reader.h"
#include "view.h"

/* Sets ->jobs of @view: the waiting tickets in order.  Returns 0 or a negative errno. */
MUST_CHECK int view_fill_jobs(struct state_reader *reader, struct view *view);

/* Sets ->gpuless of @view: the jobs that run on no GPU.  Returns 0 or -ENOMEM. */
MUST_CHECK int view_fill_gpuless(const struct state_reader *reader, struct view *view);

#endif
