/*
 * Which job of a batch goes into the queue next, and which has to come out of it again.  Pure
 * but for memory.
 *
 * Higher priority first, then the order of the file.
 */
#ifndef GPULEASE_BATCH_PLAN_H
#define GPULEASE_BATCH_PLAN_H

#include "batch_jobs.h"

struct batch_plan {
	const struct batch_jobs *jobs;
	uint64_t *
		order; /* numbers of the jobs that the file has, as they are to be started */
	size_t count;
	size_t first;                  /* nobody before it is to be started any more */
	struct batch_plan_name *names; /* sorted, of those who have one */
	size_t name_count;
	struct batch_plan_key *keys; /* sorted, of all jobs; only with ->once */
	size_t key_count;
	bool is_reordered; /* somebody who waits is to come later than before */
	bool once;         /* nothing that was done before is done again */
};

#define BATCH_PLAN_NONE ((struct batch_plan){ .order = NULL })

/* What is to be done with the job that batch_plan_next() returns. */
enum batch_step {
	BATCH_STEP_WAIT,    /* nothing: no job may be started now */
	BATCH_STEP_START,   /* starts it */
	BATCH_STEP_CANCEL,  /* its line says that it is not to be run */
	BATCH_STEP_DROP,    /* with ->once: an equal one is done */
	BATCH_STEP_GIVE_UP, /* one that it was to come after has failed: @ret_other */
};

/*
 * The jobs of the file are the @count numbers at @order now, in its order.  Called again
 * whenever the file was read again.  0 or -ENOMEM.
 */
MUST_CHECK int batch_plan_begin(struct batch_plan *plan, const struct batch_jobs *jobs,
	const uint64_t *order, size_t count);

/* Jobs that were started may be to be started again: forget what is known of their order. */
void batch_plan_again(struct batch_plan *plan);

/*
 * What is next; BATCH_STEP_START only where it @may_start.  *@ret_job is set but for
 * BATCH_STEP_WAIT.
 */
enum batch_step batch_plan_next(struct batch_plan *plan, bool may_start,
	struct batch_job **ret_job, uint64_t *ret_other);

/*
 * The next one that waits in the queue before one that is to come first, NULL: none.  It is to
 * be recalled; so is each that follows.
 */
struct batch_job *batch_plan_find_early(struct batch_plan *plan);

/* Whether none of those has failed that @job is to come after with success. */
bool batch_plan_is_free(const struct batch_plan *plan, struct batch_job *job);

/* A job that waits for others of the batch, which are not there or wait for it; NULL: none. */
struct batch_job *batch_plan_find_stuck(const struct batch_plan *plan);

void batch_plan_release(struct batch_plan *plan);

#endif
