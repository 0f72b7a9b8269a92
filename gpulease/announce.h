/*
 * What a job is told on stderr before it is ended by gpulease itself.
 */
#ifndef GPULEASE_ANNOUNCE_H
#define GPULEASE_ANNOUNCE_H

#include "base.h"

/* "job 7 has reached its time limit of 2h: TERM now, KILL after 30s". */
void announce_limit(uint64_t job, int64_t limit_ms, int64_t grace_ms);

/* @ticket, which has a higher priority, gets its GPUs. */
void announce_preemption(uint64_t ticket);

#endif
