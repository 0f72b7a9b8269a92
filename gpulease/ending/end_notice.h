/*
 * What gpulease prints on a job's stderr before it ends the job: that the time limit is reached, or
 * that another job or a window preempts it.
 */
#ifndef GPULEASE_END_NOTICE_H
#define GPULEASE_END_NOTICE_H

#include "base.h"

/*
 * Prints "job 7 has reached its time limit of 2h: TERM now, KILL after 30s"; of a step, which is a
 * command inside the job, "a step of job 7 has reached …".
 */
void end_notice_limit(uint64_t job, bool is_step, int64_t limit_ms, int64_t grace_ms);

/* Prints that job @job, which has a higher priority, gets the job's GPUs; 0: a window does. */
void end_notice_preemption(uint64_t job);

#endif
