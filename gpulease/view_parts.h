/*
 * Between the parts of the views: view.c looks and describes the GPUs, view_jobs.c those who
 * wait.
 */
#ifndef GPULEASE_VIEW_PARTS_H
#define GPULEASE_VIEW_PARTS_H

#include "look.h"
#include "view.h"

/* The pid as it can be used here: that of another pid namespace is none, 0. */
uint32_t view_pid(const struct look *look, const struct owner *owner);

/* Sets ->gpuless of @view.  0 or -ENOMEM. */
MUST_CHECK int view_fill_gpuless(const struct look *look, struct view *view);

/* Sets ->jobs of @view, as the plan has them.  0 or a negative errno. */
MUST_CHECK int view_fill_jobs(struct look *look, struct view *view);

#endif
