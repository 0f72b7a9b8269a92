/*
 * Jobs at work: those that wait in the queue or run.  ->active of the runner has their numbers.
 */
#ifndef GPULEASE_BATCH_ACTIVE_H
#define GPULEASE_BATCH_ACTIVE_H

#include "batch_runner.h"

/*
 * Starts the process of @job.  If that fails for a passing reason, all starts are put off for 10
 * seconds; if its log can never be opened, the job ends as one that cannot run.
 */
void batch_active_start(struct batch_runner *runner, struct batch_job *job);

/* Reads the messages of all children.  Does not wait. */
void batch_active_receive(struct batch_runner *runner);

/* Reaps the children that have exited.  Does not wait. */
void batch_active_reap(struct batch_runner *runner);

/* Adds @job to ->active.  Returns 0 or -ENOMEM. */
MUST_CHECK int batch_active_add(struct batch_runner *runner, const struct batch_job *job);

/* Removes the entry @at of ->active; the last entry takes its place. */
void batch_active_remove(struct batch_runner *runner, size_t at);

#endif
