/*
 * Tables of text: columns under titles, fitted to a width.  Pure but for memory: what is
 * written depends on the cells and the style alone.
 *
 * Cells hold what others have written, so whatever a terminal could take for more than text
 * becomes `?` (text_add_printable).  A cell that is never put, or is empty, shows as `-`.
 *
 * Where the table is wider than it may be, columns are cut, the last one first, each down to
 * its `least`; if that is not enough, the ends of the lines are.  A cut is marked with `…`.
 */
#ifndef GPULEASE_RENDER_TABLE_H
#define GPULEASE_RENDER_TABLE_H

#include <stdio.h>

#include "text.h"

enum { TABLE_COLUMNS_MAX = 16 };

struct table_column {
	const char *title;
	bool is_right;    /* aligned, for numbers */
	bool is_optional; /* left out where no row has anything in it */
	unsigned least;   /* may be cut to this many columns; 0: is not cut */
};

enum table_tint {
	TINT_NONE,
	TINT_BOLD,
	TINT_GREEN,
	TINT_YELLOW,
	TINT_RED,
	TINT_BLUE,
	TINTS,
};

struct table_style {
	unsigned width; /* of a terminal; 0: as wide as it takes */
	bool has_colour;
};

struct table_cell {
	char *text; /* NULL: empty */
	enum table_tint tint;
};

/* The columns stay the caller's, the cells are the table's. */
struct table {
	const struct table_column *columns;
	unsigned column_count;
	struct table_cell *cells; /* row by row */
	size_t rows, room;
	bool is_short_of_memory;
};

#define TABLE_ON(array)                            \
	((struct table){                           \
		.columns = (array),                \
		.column_count = ARRAY_SIZE(array), \
	})

/* Begins the next row. */
void table_row(struct table *table);

/* Puts the text into a cell of the row begun last. */
void table_put(struct table *table, unsigned column, const char *text);
void table_putf(struct table *table, unsigned column, const char *format, ...)
	PRINTF_LIKE(3, 4);
void table_tint(struct table *table, unsigned column, enum table_tint tint);

/* Writes titles and rows to @out.  0, or -ENOMEM where a cell was lost: nothing is written. */
MUST_CHECK int table_print(
	const struct table *table, const struct table_style *style, FILE *out);

void table_release(struct table *table);

/*
 * Writes @text as a line of its own, with the same care for what is in it; where it is wider
 * than it may be it goes on in the next line, indented.
 */
void line_print(const char *text, const struct table_style *style, FILE *out);

/* The same, but cut where it is wider. */
void line_print_cut(const char *text, const struct table_style *style, FILE *out);

#endif
