/*
 * Whether a process may be signalled for the sake of a job: what --cancel and --signal-job ask
 * before they do anything.
 *
 * A record names a process by its number.  Its real user has to be the user of the record.  In a
 * directory that a group shares each member can write any record, and root's signals reach every
 * process: there root signals only a process that shows itself that it belongs to the job.  It
 * carries the job's tag or token, or it has the job's FIFO open for writing.  --force signals
 * without either.
 */
#ifndef GPULEASE_AIM_H
#define GPULEASE_AIM_H

#include "context.h"
#include "owner.h"

/*
 * Checks the live process @pid of job @job, whose owner is @owner; @word is what a message calls
 * the job, "ticket" or "job".  0, or EXIT_NOT_DONE after the reason was told.
 */
MUST_CHECK int aim_check(const struct context *context, const char *word, uint64_t job,
	const struct owner *owner, uint32_t pid);

#endif
