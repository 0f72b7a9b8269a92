/*
 * The wait of an exclusive step for GPUs that other exclusive steps of its job have.
 */
#ifndef GPULEASE_EXCLUSIVE_STEP_H
#define GPULEASE_EXCLUSIVE_STEP_H

#include "context.h"
#include "step_lock.h"

/*
 * Locks the GPUs that @lock asks for, and waits until they are free, as long as --max-wait and
 * --immediate allow; says so in one line.  An errno, as of a full disk, does not end the wait.
 * @job is the id of the job.  Returns 0 with ->level of @lock, EXIT_GAVE_UP or EXIT_MISUSE, both
 * after a message.
 */
MUST_CHECK int exclusive_step_wait(
	const struct context *context, struct step_lock *lock, uint64_t job);

#endif
