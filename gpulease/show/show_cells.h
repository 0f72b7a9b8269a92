/*
 * Cells that several tables have (render_table.h): ids, spans, times, needs.
 */
#ifndef GPULEASE_SHOW_CELLS_H
#define GPULEASE_SHOW_CELLS_H

#include "render_table.h"
#include "view.h"

/* Puts an id into a cell; 0 leaves the cell empty. */
void show_put_id(struct table *table, unsigned column, uint64_t id);

/* Puts the number of the attempt into a cell; the first attempt leaves the cell empty. */
void show_put_attempt(struct table *table, unsigned column, uint32_t attempt);

/* Puts a span into a cell; a negative one leaves the cell empty. */
void show_put_span(struct table *table, unsigned column, int64_t span_ms);

/*
 * Put the local time of day @at_ms into a cell, or append it, with the date if it is another day
 * than @now_ms; 0 puts nothing.
 */
void show_put_time(struct table *table, unsigned column, int64_t at_ms, int64_t now_ms);
void show_add_time(struct text *out, int64_t at_ms, int64_t now_ms);

/* Puts what is left of the time limit of a running job into a cell; without a limit, none. */
void show_put_left(struct table *table, unsigned column, const struct view_holder *job);

/* Appends what is needed of each GPU, "0.5+18G"; nothing for whole GPUs. */
void show_add_need(const struct need *need, struct text *out);

/* Appends the local date and time of day, "2026-11-23 05:44". */
void show_add_date(struct text *line, int64_t at_ms);

/* Prints the table and releases it.  Returns 0 or -ENOMEM. */
MUST_CHECK int show_and_release(
	struct table *table, const struct table_style *style, FILE *out);

#endif
