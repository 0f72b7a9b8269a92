/*
 * Whether --cancel and --signal-job may signal a process that a record names.  They check this
 * before they do anything.
 *
 * A record names a process by its pid.  The real user of the process has to be the user of the
 * record.  In a directory that a group shares each member can write any record, and root's signals
 * reach every process.  There root signals only a process that shows that it belongs to the job: it
 * carries the job's tag or token, or has the job's FIFO open for writing.  With --force both checks
 * are left out.
 */
#ifndef GPULEASE_AIM_H
#define GPULEASE_AIM_H

#include "context.h"
#include "owner.h"

/*
 * Checks the live process @pid of job @job, which @owner owns; messages call the job @word,
 * "ticket" or "job".  0, or EXIT_NOT_DONE after it has told the reason.
 */
MUST_CHECK int aim_check(const struct context *context, const char *word, uint64_t job,
	const struct owner *owner, uint32_t pid);

#endif
