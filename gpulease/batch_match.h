/*
 * Which job each line of a file that was read again belongs to.  Pure but for memory.
 */
#ifndef GPULEASE_BATCH_MATCH_H
#define GPULEASE_BATCH_MATCH_H

#include "batch_jobs.h"

/*
 * @before are the numbers of the jobs that the file had, in its order.  *@ret has, for each line
 * of @list, the number of the job that it is the line of, or 0: a new one; to be freed by the
 * caller.  A job is known by its key.  Lines that stayed in place stay the same jobs; where
 * equal lines have become fewer, and it cannot be told which are gone, those that have ended
 * are, so that none is ever taken for done that was not run.  A line that is new there is one
 * that was gone for a while, where there is such a job: that runs, or waits, or else has ended.
 * 0 or -ENOMEM.
 */
MUST_CHECK int batch_match(const struct batch_jobs *jobs, const uint64_t *before,
	size_t before_count, const struct batch_list *list, uint64_t **ret);

#endif
