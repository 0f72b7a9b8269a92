/*
 * What is shown of a batch: a line for each event, and the board.  Pure.
 */
#ifndef GPULEASE_BATCH_BOARD_H
#define GPULEASE_BATCH_BOARD_H

#include "batch_jobs.h"
#include "render_table.h"

struct batch_board {
	const char *file; /* "jobs.txt" */
	const struct batch_jobs *jobs;
	const uint64_t *order; /* numbers, as the file has them; others are shown first */
	size_t order_count;
	int64_t now_ms;   /* CLOCK_REALTIME */
	int64_t begun_ms; /* the run */
	bool is_stopping, is_watching;
};

struct batch_counts batch_count(const struct batch_jobs *jobs);

/*
 * The board: who runs, with a bar of how much of its limit is over, who waits and why, who is
 * done; sections that are long are cut in the middle, with a line that says how many there are
 * more.  Lines of at most @style->width columns (0: any) and @rows of them (0: any).
 */
void batch_board_print(const struct batch_board *board, const struct table_style *style,
	unsigned rows, FILE *out);

/*
 * The line of @event of @job (NULL: of none), without its newline; "" for those that nobody is
 * told of.  With the time of day, in the local zone.
 */
void batch_line_of(const struct batch_event *event, const struct batch_job *job,
	const struct batch_counts *counts, unsigned tolerance_percent, struct text *out);

/* "50 jobs: 47 finished, 2 failed, 1 cancelled, in 3h05m". */
void batch_summary(const struct batch_counts *counts, int64_t ran_ms, struct text *out);

/*
 * The jobs that failed and are not ->is_listed yet, a line each with the name of its log, newest
 * last, at most @most.  All of them are from now on, also those that were more.
 */
void batch_failures_print(
	struct batch_jobs *jobs, const char *folder, size_t most, FILE *out);

#endif
