/*
 * --log and --follow: prints the log of a background job, as it is or until the job has ended.
 *
 * It sleeps until an event: inotify reports changes of the log and, until the log exists, of its
 * folder; a pidfd and the FIFO report the end of the job (liveness.h).  If no inotify instance can
 * be had (a user has 128), it looks at the file once a second.
 *
 * The log's bytes go to stdout unchanged; notices go to stderr.  A crash leaves no trace.
 */
#ifndef GPULEASE_JOBLOG_FOLLOW_H
#define GPULEASE_JOBLOG_FOLLOW_H

#include "context.h"

/*
 * Prints the log of @job as it is now.  Returns the exit status, after it has printed the reason.
 */
MUST_CHECK int joblog_show(const struct context *context, uint64_t job);

/*
 * Prints the log of @job, waiting for it if it does not exist yet, and all that the job writes
 * until it has ended, even if the file is renamed or deleted.  Returns the exit status: 0 if all
 * was printed, however the job has ended.
 */
MUST_CHECK int joblog_follow(const struct context *context, uint64_t job);

#endif
