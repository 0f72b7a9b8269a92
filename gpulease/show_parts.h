/*
 * What several tables have: cells.  For show_table.c and show_queue.c.
 */
#ifndef GPULEASE_SHOW_PARTS_H
#define GPULEASE_SHOW_PARTS_H

#include "show.h"

/* An id, but not 0; a span, but not a negative one. */
void show_put_id(struct table *table, unsigned column, uint64_t id);
void show_put_span(struct table *table, unsigned column, int64_t span_ms);

/* Appends what is needed of each GPU, "0.5+18G"; nothing where that is all of it. */
void show_add_need(const struct need *need, struct text *out);

/* Prints the table and gives its memory back.  0 or -ENOMEM. */
MUST_CHECK int show_and_release(
	struct table *table, const struct table_style *style, FILE *out);

#endif
