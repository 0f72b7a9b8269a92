/*
 * The jobs that wait or run.  Verbs choose among them by `all`, `mine`, a name or a range of ids.
 */
#ifndef GPULEASE_LIVE_JOBS_H
#define GPULEASE_LIVE_JOBS_H

#include "queue.h"
#include "snapshot.h"

struct live_job {
	uint64_t id;
	uint32_t uid;
	const char *name; /* "": none */
	/* ->name is only the beginning of the name with this hash (job_name.h); 0: it is whole */
	uint64_t cut_hash;
};

/* Handles one job.  Returns 0 to continue. */
typedef int live_job_fn(void *arg, const struct live_job *job);

/*
 * Calls @each for every job that waits or runs, until @each returns another value than 0.  A job
 * may come twice.  The caller has called queue_begin() and snapshot_read().  Returns what @each
 * returned, 0 after all jobs, or a negative errno.
 */
MUST_CHECK int live_jobs_each(
	struct queue *queue, const struct snapshot *view, live_job_fn *each, void *arg);

#endif
