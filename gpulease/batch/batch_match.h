/*
 * Finds the job of each line of a jobs file that was read again.  Pure but for memory.
 */
#ifndef GPULEASE_BATCH_MATCH_H
#define GPULEASE_BATCH_MATCH_H

#include "batch_jobs.h"

/*
 * @before are the numbers of the jobs that the file had, in its order.  Sets *@ret, to be freed by
 * the caller: for each line of @list the number of its job, or 0 for a new job.  A line and a job
 * belong together if their keys and environments are equal; and otherwise if their keys are equal
 * and batch_is_open() is true for the job.
 *
 * Of several equal lines, the n-th belongs to the n-th job with their key.  If there are fewer of
 * them than before, the jobs that have ended lose their lines first, the last ones first, so that
 * no job counts as done that was not run.  If there are more, the last lines get jobs with their
 * key that had no line for a while: those that run, then those that wait, those that are new, those
 * that have ended; lines beyond that are new.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int batch_match(const struct batch_jobs *jobs, const uint64_t *before,
	size_t before_count, const struct batch_list *list, uint64_t **ret);

#endif
