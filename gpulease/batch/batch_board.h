/*
 * The board of a batch: a table of the jobs that run, wait and are done, for the terminal and for
 * status.txt.  Pure.
 */
#ifndef GPULEASE_BATCH_BOARD_H
#define GPULEASE_BATCH_BOARD_H

#include "batch_jobs.h"
#include "render_table.h"

struct batch_board {
	const char *file; /* the name of the jobs file without its folder: "jobs.txt" */
	const struct batch_jobs *jobs;
	/* numbers of jobs, in the order of the file; jobs that are not among them come first */
	const uint64_t *order;
	size_t order_count;
	int64_t now_ms;   /* CLOCK_REALTIME */
	int64_t begun_ms; /* when the run began, CLOCK_REALTIME */
	bool is_stopping, is_watching;
};

/*
 * Prints the board: the jobs that run, each with a bar for the part of its time limit that is over;
 * those that wait, with the reason; and those that are done.  It has at most @rows lines (0: no
 * limit) of @style->width columns (0: no limit).  A section that does not fit ends with a line that
 * says how many jobs are left out.
 */
void batch_board_print(const struct batch_board *board, const struct table_style *style,
	unsigned rows, FILE *out);

#endif
