/*
 * --log and --follow: print the log of a job.
 *
 * The log is read from a file system that the nodes share, on which no event tells of changes by
 * another node, so it is looked at again and again; squeue is asked as engine_poll.h says.
 */
#ifndef GPULEASE_ENGINE_FOLLOW_H
#define GPULEASE_ENGINE_FOLLOW_H

#include "base.h"

/*
 * Prints the log of job @id until the job has ended, and why it waits.  Returns 0, or the exit
 * status of the job with @wants_status; else an exit status after a message.
 */
int engine_follow(uint64_t id, bool wants_status);

#endif
