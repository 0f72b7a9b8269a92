/*
 * The words for jobs: a log line for each event, the summary, and the parts of sentences that the
 * lines and the board share.  Pure.
 */
#ifndef GPULEASE_BATCH_REPORT_H
#define GPULEASE_BATCH_REPORT_H

#include "batch_jobs.h"

/*
 * Appends the line for @event of @job (NULL: it has none), without a newline: the time of day in
 * the local zone, the job, what has happened.  Appends nothing for kinds of events that people do
 * not see.  @counts is used for BATCH_STARTED.
 */
void batch_report_event(const struct batch_event *event, const struct batch_job *job,
	const struct batch_counts *counts, unsigned tolerance_percent, struct text *out);

/* Appends "50 jobs: 47 finished, 2 failed, 1 cancelled, in 3h05m". */
void batch_report_summary(
	const struct batch_counts *counts, int64_t ran_ms, struct text *out);

/*
 * Prints a line, with the name of the log, for each failed job that is not ->is_listed yet: the
 * newest last, at most @most.  Marks all of them ->is_listed, printed or not, and flushes @out.
 */
void batch_report_failures(
	struct batch_jobs *jobs, const char *folder, size_t most, FILE *out);

/* Appends the ids of the jobs of the @count entries with @numbers: "412, 415". */
void batch_report_add_jobs(const struct batch_jobs *jobs, const uint64_t *numbers,
	size_t count, struct text *out);

/* How a job or an attempt of it has ended. */
struct batch_end {
	enum batch_cause cause;
	int status;
	bool is_by_line; /* BATCH_BY_CANCEL: the word `cancel` in its line did it */
	const char *
		text; /* BATCH_BY_CANCEL: the user that cancelled it; else a reason; "": none */
};

/* Appends how a job has ended: "exit status 1", "cancelled by bob". */
void batch_report_add_end(const struct batch_end *end, struct text *out);

/* Appends how an attempt has ended and that another follows: "exit status 1, tried again". */
void batch_report_add_retry(enum batch_cause cause, int status, struct text *out);

/*
 * Appends "3 running, 40 waiting, 6 finished, 1 failed".  Counts that are 0 are left out, except
 * "finished" and, if @is_at_work, "running" and "waiting".
 */
void batch_report_add_counts(
	const struct batch_counts *counts, bool is_at_work, struct text *out);

#endif
