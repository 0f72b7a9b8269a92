/*
 * What the lines and the board of a batch have in common.  Between batch_tell.c and
 * batch_board.c.
 */
#ifndef GPULEASE_BATCH_BOARD_PARTS_H
#define GPULEASE_BATCH_BOARD_PARTS_H

#include "batch_board.h"

/* Where a job stands on the board. */
enum batch_part {
	BATCH_PART_NONE, /* nowhere: its line has gone before it was run, or before this run */
	BATCH_PART_RUNNING,
	BATCH_PART_WAITING, /* also between two attempts */
	BATCH_PART_DONE,
};

enum batch_part batch_part_of(const struct batch_job *job);

/* Appends @string as text_add_printable() does. */
void batch_add_printable(const char *string, struct text *out);

/* Appends how it has ended: "exit status 1", "cancelled by bob". */
void batch_add_end(
	enum batch_cause cause, int status, const char *text, struct text *out);

/* Appends how an attempt has ended, and that another follows: "exit status 1, tried again". */
void batch_add_return(enum batch_cause cause, int status, struct text *out);

/* Appends the time of day, local; with the date where that is a day ago or more. */
void batch_add_since(int64_t since_ms, int64_t now_ms, struct text *out);

/* "3 running, 40 waiting, 6 finished, 1 failed": what there is, @has_begun: of those, too. */
void batch_add_counts(
	const struct batch_counts *counts, bool is_at_work, struct text *out);

#endif
