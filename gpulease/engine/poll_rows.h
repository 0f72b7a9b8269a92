/*
 * What squeue and sacct say of the jobs that a process waits for (engine_poll.h).  Pure.
 */
#ifndef GPULEASE_POLL_ROWS_H
#define GPULEASE_POLL_ROWS_H

#include "engine_poll.h"

/* The fields that are asked for, in the order in which the rows are read. */
extern const char poll_squeue_fields[], poll_sacct_fields[];

enum {
	POLL_LEAST_MS = 100,
	POLL_MOST_MS = 10 * 1000,
	POLL_RECORD_MS =
		1000, /* the least, once only the record says that the job has ended */
	POLL_DOUBT_MS =
		3000, /* for which a job has to stay preempted before that is its end */
	POLL_LAG_MS = 10 * 1000, /* sacct may not know the end of a job before */
};

/* Clears what the last answer has said of jobs that have not ended. */
void poll_rows_begin(struct engine_poll *poll);

/* Reads the rows of squeue, and changes @text. */
void poll_rows_squeue(struct engine_poll *poll, char *text, uint32_t uid, int64_t now_ms);

/*
 * Reads the rows of sacct, and changes @text.  Of several jobs with one id the latest counts, if it
 * was not submitted before the job that is meant.
 */
void poll_rows_sacct(struct engine_poll *poll, char *text);

/*
 * Ends @job, which neither squeue nor sacct knows, with the status @record of its record, -1: none.
 */
void poll_rows_give_up(struct engine_poll *poll, struct polled_job *job, int record);

/* Returns how old an answer may be for the jobs that have not ended. */
int64_t poll_interval_ms(const struct engine_poll *poll, int64_t now_ms);

#endif
