/*
 * Whether --cancel and --signal-job may signal a process that a record names; checked before they
 * do anything.
 *
 * A record names a process by its pid.  The real user of the process has to be the user of the
 * record.  In a directory that a group shares, each member can write any record, and root's signals
 * reach every process.  So root signals only a process there that shows that it belongs to the job:
 * it carries the job's tag or token, or has the job's FIFO open for writing.  --force skips both
 * checks.
 */
#ifndef GPULEASE_SIGNAL_PERMISSION_H
#define GPULEASE_SIGNAL_PERMISSION_H

#include "context.h"
#include "owner.h"

/*
 * Checks that this user may signal @pid, a live process of job @job.  The job's record names
 * @owner; messages call the job @word, "ticket" or "job".  Returns 0, or EXIT_NOT_DONE after it has
 * printed the reason.
 */
MUST_CHECK int signal_permission_check(const struct context *context, const char *word,
	uint64_t job, const struct owner *owner, uint32_t pid);

#endif
