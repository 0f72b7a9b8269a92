/*
 * The jobs that wait or run: by `all`, `mine`, a name or a range of ids, verbs choose among them.
 */
#ifndef GPULEASE_LIVE_JOBS_H
#define GPULEASE_LIVE_JOBS_H

#include "queue.h"
#include "snapshot.h"

struct live_job {
	uint64_t id;
	uint32_t uid;
	const char *name; /* as records keep it: the beginning of a long one; "": none */
};

/* Returns 0 to go on. */
typedef int live_job_fn(void *arg, const struct live_job *job);

/*
 * Calls @each for every job that waits or runs, until @each returns something but 0.  A job may
 * come twice.  The caller has called queue_begin() and snapshot_read().  Returns what @each
 * returned, 0 after all jobs, or a negative errno.
 */
MUST_CHECK int live_jobs_each(
	struct queue *queue, const struct snapshot *view, live_job_fn *each, void *arg);

#endif
