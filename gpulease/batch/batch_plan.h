/*
 * The plan of a batch: which job goes into the queue next, and which waiting job has to leave the
 * queue because others now come before it.  Pure but for memory.
 *
 * A higher priority comes first, then the order of the file.
 */
#ifndef GPULEASE_BATCH_PLAN_H
#define GPULEASE_BATCH_PLAN_H

#include "batch_jobs.h"

struct batch_plan {
	const struct batch_jobs *jobs;
	uint64_t *
		order; /* numbers of the jobs that the file has, in the order of starts */
	size_t count;
	size_t first;                  /* no job before this index is to be started */
	struct batch_plan_name *names; /* of the jobs that have one, sorted */
	size_t name_count;
	struct batch_plan_key *keys; /* of all jobs, sorted; only with ->once */
	size_t key_count;
	bool is_reordered; /* a job that waits now comes later than before */
	bool once; /* --once: a job that is equal to one that is done is dropped */
};

#define BATCH_PLAN_NONE ((struct batch_plan){ .order = NULL })

/* What to do with the job that batch_plan_next() returns. */
enum batch_step {
	BATCH_STEP_WAIT,    /* nothing: no job can be started now */
	BATCH_STEP_START,   /* start it */
	BATCH_STEP_CANCEL,  /* end it: its line says `cancel` */
	BATCH_STEP_DROP,    /* end it: with ->once, an equal job is done */
	BATCH_STEP_GIVE_UP, /* end it: *@ret_other, which it comes after, has failed */
};

/*
 * Plans anew for the @count jobs with the numbers at @order, in the order of the file.  Call this
 * whenever the file was read again; keeps ->once.  The plan refers to @jobs, which has to stay.
 * Returns 0, or -ENOMEM; then the plan is as before.
 */
MUST_CHECK int batch_plan_begin(struct batch_plan *plan, const struct batch_jobs *jobs,
	const uint64_t *order, size_t count);

/* Call this when a job that was at work is new again: looks at all jobs from the first on. */
void batch_plan_rescan(struct batch_plan *plan);

/*
 * Returns what to do next, and with which job: *@ret_job is set except for BATCH_STEP_WAIT.
 * Returns BATCH_STEP_START only if @may_start.
 */
enum batch_step batch_plan_next(struct batch_plan *plan, bool may_start,
	struct batch_job **ret_job, uint64_t *ret_other);

/*
 * Returns the first job that waits in the queue although another job has to come before it, or NULL
 * if there is none.  The caller recalls it and calls again, because those after it follow.
 */
struct batch_job *batch_plan_find_early(struct batch_plan *plan);

/* Whether none of the jobs in `after-ok` of @job's line has failed. */
bool batch_plan_is_unblocked(const struct batch_plan *plan, struct batch_job *job);

/*
 * Returns a job that is still to be started, or NULL.  When nothing is at work, such a job waits
 * for jobs that do not exist or that wait for it.
 */
struct batch_job *batch_plan_find_stuck(const struct batch_plan *plan);

void batch_plan_release(struct batch_plan *plan);

#endif
