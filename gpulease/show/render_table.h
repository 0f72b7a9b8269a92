/*
 * Tables of text: columns under titles, fitted to a width.  Pure but for memory: the output depends
 * only on the cells and the style.
 *
 *	TABLE_ON -> table_row, table_put … -> table_print -> table_release
 *
 * The texts of cells come from other users, so any byte that a terminal could obey becomes `?`
 * (text_add_printable()).  An empty cell is printed as `-`.
 *
 * A table that is too wide loses columns by their `rank`.  A lost column that folds stands below
 * its row; an empty cell of it does not.  What is still too wide is cut: the columns, the last one
 * first, each down to its `good` width, then to its `least`; then the ends of the lines.  A cut is
 * marked with `…`.
 */
#ifndef GPULEASE_RENDER_TABLE_H
#define GPULEASE_RENDER_TABLE_H

#include <stdio.h>

#include "text.h"

enum { TABLE_COLUMNS_MAX = 16 };

struct table_column {
	const char *title;
	bool is_right;    /* aligned to the right, for numbers */
	bool is_optional; /* left out if all its cells are empty */
	bool is_folded;   /* without room beside the others, it stands below its row */
	uint8_t rank; /* the order in which columns get the room that there is; 0: always shown */
	uint8_t good;  /* columns with a rank leave it this width; 0: its whole width */
	uint8_t least; /* it may be cut to this width; 0: it is not cut */
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
	unsigned width; /* of the terminal; 0: unlimited */
	bool has_colour;
};

struct table_cell {
	char *text; /* NULL: empty */
	enum table_tint tint;
};

/* The caller owns the columns, the table its cells. */
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

/* Puts a text into a cell of the last row; an empty text leaves the cell as it is. */
void table_put(struct table *table, unsigned column, const char *text);
void table_putf(struct table *table, unsigned column, const char *format, ...)
	PRINTF_LIKE(3, 4);
void table_tint(struct table *table, unsigned column, enum table_tint tint);

/* Leaves a cell of the last row blank if the cell above it has a text. */
void table_blank(struct table *table, unsigned column);

/* Prints titles and rows.  Returns 0, or -ENOMEM without printing if a cell was lost. */
MUST_CHECK int table_print(
	const struct table *table, const struct table_style *style, FILE *out);

void table_release(struct table *table);

/*
 * Prints @text as a line of its own, made printable like a cell.  A text that is too wide goes on
 * in the next line, indented.
 */
void line_print(const char *text, const struct table_style *style, FILE *out);

/* Prints @text likewise, behind @label, which has a column of its own. */
void line_print_labelled(
	const char *label, const char *text, const struct table_style *style, FILE *out);

/* Prints @text as a line, but cuts a text that is too wide. */
void line_print_cut(const char *text, const struct table_style *style, FILE *out);

#endif
