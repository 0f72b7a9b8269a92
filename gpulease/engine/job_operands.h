/*
 * The jobs that the operands of a verb mean: ids, ranges, names, `mine` and `all`, as on one
 * machine, and tasks of arrays, `17_3` or `17_[1-3,8]`, each as a word of its own.  An id is taken
 * as it is; for the others squeue is asked once.
 */
#ifndef GPULEASE_JOB_OPERANDS_H
#define GPULEASE_JOB_OPERANDS_H

#include "cluster_jobs.h"
#include "engine_line.h"
#include "operands.h"

/* Handles one job; @known is what squeue says of it, NULL for an id.  Returns 0 to continue. */
typedef int job_operand_fn(void *arg, uint64_t id, const struct cluster_job *known);

/*
 * Calls @each for each job that the operands of @line mean, until it returns another value than 0.
 * A word means jobs that wait or run.  A word that means none is reported, and raises *@status to
 * EXIT_NOT_DONE.  @kind says what a name means: OPERAND_NAME: one job, OPERAND_JOBS: any number.
 * Returns 0, what @each returned, or an exit status after a message.
 */
MUST_CHECK int job_operands_each(const struct engine_line *line, enum operand_kind kind,
	job_operand_fn *each, void *arg, int *status);

/* Returns the id of the job of Slurm that this process is a part of; 0: none. */
uint64_t job_operands_own(void);

#endif
