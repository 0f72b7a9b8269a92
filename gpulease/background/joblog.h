/*
 * The logs of background jobs: LOGS/ID.log.  LOGS is $XDG_STATE_HOME/gpulease/logs
 * (~/.local/state/gpulease/logs), with one folder more inside a Slurm allocation; for simulated
 * GPUs it is logs/ in their state directory.  With -o FILE the name is a symbolic link to FILE, so
 * every log is found by the job's id alone.
 *
 * All of this is done with the user's rights, in files of the user (0600 below 0700).  A crash
 * leaves an empty log or none.  The log of an earlier job with the same id is renamed to ID.log~.
 */
#ifndef GPULEASE_JOBLOG_H
#define GPULEASE_JOBLOG_H

#include "context.h"

/*
 * Before a job is submitted: makes LOGS if it is missing and checks that the user may write there.
 * Returns 0, or a negative errno with the reason in @why (-ENOENT also if there is no home folder
 * to put LOGS in).
 */
MUST_CHECK int joblog_prepare(const struct context *context, struct why *why);

/*
 * Creates the log of @job, empty.  Returns a descriptor open for reading and appending, which the
 * caller closes, or a negative errno with the reason in @why.
 */
MUST_CHECK int joblog_create(
	const struct context *context, uint64_t job, struct why *why);

/*
 * Makes ID.log of @job a symbolic link to @file (-o, expanded), unless @file is that log itself.
 * Returns 0, or a negative errno with the reason in @why.
 */
MUST_CHECK int joblog_link(
	const struct context *context, uint64_t job, const char *file, struct why *why);

/*
 * Opens the log of @job for reading.  Sets @out to its path, except for -ENAMETOOLONG.  Returns a
 * descriptor, which the caller closes, or a negative errno: -ENOENT if there is no log.
 */
MUST_CHECK int joblog_open(
	const struct context *context, uint64_t job, char out[PATH_MAX]);

/*
 * Writes the path of the log of @job, whether it exists or not.  Returns 0, -ENAMETOOLONG, or
 * -ENOENT if there is no home folder.
 */
MUST_CHECK int joblog_path(
	const struct context *context, uint64_t job, char *out, size_t size);

#endif
