/*
 * --log, --follow and --wait-for: the one job that a name means.
 */
#ifndef GPULEASE_NAMED_JOB_H
#define GPULEASE_NAMED_JOB_H

#include "context.h"
#include "operands.h"
#include "queue.h"
#include "snapshot.h"

/*
 * If @operand is a word, sets its ->first to the id of the only job of that name which waits or
 * runs, of this user or, for root, of any user.  @queue and @view are as shared_state_open() leaves
 * them.  Returns 0, or an exit status after a message: there is no such job, or there are several.
 */
MUST_CHECK int named_job_find(const struct context *context, struct queue *queue,
	const struct snapshot *view, struct operand *operand);

#endif
