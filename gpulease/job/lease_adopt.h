/*
 * --lease-only --pid PID: gives a process that uses GPUs already a lease on them.  For what a crash
 * leaves see lease_heir.h.
 */
#ifndef GPULEASE_LEASE_ADOPT_H
#define GPULEASE_LEASE_ADOPT_H

#include "broker.h"
#include "context.h"

/*
 * Gives the process ->adopt_pid of the settings a lease on the GPUs that it uses, at once or not at
 * all, and prints the id of the job.  Returns 0, or EXIT_MISUSE after it has printed the reason; if
 * only printing the id failed, the lease exists.
 */
MUST_CHECK int lease_adopt(const struct context *context, struct broker *broker,
	const struct request *request);

#endif
