/*
 * Showing the log of a background job: what is there, and what comes.
 *
 * Nothing is looked at without cause: inotify tells of the file, and, until it is there, of its
 * folder; a pidfd and the FIFO tell of the job's end (life.h).  Where there is no inotify to be
 * had (a user has 128 of them) the file is looked at once a second.
 *
 * The bytes are the user's own and go to stdout as they are.  Nothing is written but those.
 */
#ifndef GPULEASE_FOLLOW_H
#define GPULEASE_FOLLOW_H

#include "context.h"

/* Prints the log of @job as it is.  The exit status, after the reason was told. */
MUST_CHECK int show_log(const struct context *context, uint64_t job);

/*
 * Prints the log of @job, waiting for it where it is to come, and what the job writes until it
 * has ended, whatever becomes of the file's name.  The exit status, 0 when all of it was
 * printed: how the job has ended is not asked.
 */
MUST_CHECK int follow(const struct context *context, uint64_t job);

#endif
