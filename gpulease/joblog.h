/*
 * The logs of background jobs: LOGS/ID.log, where LOGS is $XDG_STATE_HOME/gpulease/logs
 * (~/.local/state/gpulease/logs), for simulated GPUs logs/ in their own state directory.  With
 * -o FILE that name is a symbolic link to FILE, so a log is found by the job's id alone.
 *
 * Everything here is done as the user, in files of theirs (0600 below 0700).  A crash leaves a
 * log that is empty, or none; what an earlier job of that number has left there is ID.log~ then.
 */
#ifndef GPULEASE_JOBLOG_H
#define GPULEASE_JOBLOG_H

#include "context.h"

/*
 * Before a job is submitted: finds LOGS, makes it where it is missing and sees whether one may
 * write there.  0, or a negative errno with the reason in @why (-ENOENT also where there is no
 * home to have it in).
 */
MUST_CHECK int joblog_prepare(const struct context *context, struct why *why);

/*
 * Makes the log of @job, new and empty; one of an earlier job with that number becomes ID.log~.
 * Returns a descriptor open for appending, or a negative errno with the reason in @why.
 */
MUST_CHECK int joblog_create(
	const struct context *context, uint64_t job, struct why *why);

/*
 * The log of @job is @file (-o, expanded): makes the name by which it is found, unless @file is
 * that itself.  0, or as above.
 */
MUST_CHECK int joblog_link(
	const struct context *context, uint64_t job, const char *file, struct why *why);

/*
 * Opens the log of @job to read; @out is its name in any case but -ENAMETOOLONG.  A descriptor,
 * or a negative errno: -ENOENT there is none.
 */
MUST_CHECK int joblog_open(
	const struct context *context, uint64_t job, char out[PATH_MAX]);

/* The name of the log of @job, whether it exists or not.  0 or -ENAMETOOLONG, -ENOENT. */
MUST_CHECK int joblog_path(
	const struct context *context, uint64_t job, char *out, size_t size);

#endif
