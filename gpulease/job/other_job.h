/*
 * Joining another job: --jobid ID --overlap makes the command a step of a running job of this user.
 */
#ifndef GPULEASE_OTHER_JOB_H
#define GPULEASE_OTHER_JOB_H

#include "broker.h"
#include "settings.h"

/*
 * Makes this process a part of the job that @settings name, so that its lease is not over before
 * this process has ended.  Returns 0 with the lease in @broker's view and the job's live FIFO, or
 * EXIT_MISUSE after it has printed why it is not possible.
 */
MUST_CHECK int other_job_join(const struct settings *settings, struct broker *broker,
	const struct snapshot_lease **ret, int *ret_live_fd);

#endif
