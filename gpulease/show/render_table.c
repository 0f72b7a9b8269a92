#include <errno.h>
#include <stdarg.h>

#include "array.h"
#include "render_table.h"

#define ELLIPSIS "\xe2\x80\xa6"

enum { GAP = 2, CELL_SIZE = 4096, LONG_SIZE = 16 * 1024, INDENT = 4, LABEL = 11 };

/* --- filling ----------------------------------------------------------------------- */

void table_row(struct table *table)
{
	size_t count = table->column_count;
	struct table_cell *cells = array_grow(
		table->cells, count * sizeof(*cells), table->rows, &table->room);

	if (!cells) {
		table->is_short_of_memory = true;
		return;
	}
	table->cells = cells;
	memset(table->cells + table->rows * count, 0, count * sizeof(*table->cells));
	table->rows++;
}

static struct table_cell *last_cell(struct table *table, unsigned column)
{
	if (table->is_short_of_memory)
		return NULL;
	return &table->cells[(table->rows - 1) * table->column_count + column];
}

void table_put(struct table *table, unsigned column, const char *text)
{
	struct table_cell *cell = last_cell(table, column);
	char printable[CELL_SIZE];
	struct text out = TEXT_ON(printable);

	if (!cell || !text[0])
		return;
	text_add_visible(&out, text);
	free(cell->text);
	cell->text = strdup(printable);
	table->is_short_of_memory = !cell->text;
}

void table_putf(struct table *table, unsigned column, const char *format, ...)
{
	char text[CELL_SIZE];
	va_list args;

	va_start(args, format);
	if (vsnprintf(text, sizeof(text), format, args) >= 0)
		table_put(table, column, text);
	va_end(args);
}

void table_tint(struct table *table, unsigned column, enum table_tint tint)
{
	struct table_cell *cell = last_cell(table, column);

	if (cell)
		cell->tint = tint;
}

void table_blank(struct table *table, unsigned column)
{
	const struct table_cell *cell = last_cell(table, column);

	if (cell && (cell - table->column_count)->text)
		table_put(table, column, " ");
}

void table_release(struct table *table)
{
	for (size_t i = 0; i < table->rows * table->column_count; i++)
		free(table->cells[i].text);
	free(table->cells);
	table->cells = NULL;
	table->rows = table->room = 0;
}

/* --- fitting ----------------------------------------------------------------------- */

enum { NO_COLUMN = TABLE_COLUMNS_MAX };

struct layout {
	unsigned columns[TABLE_COLUMNS_MAX]; /* indices of the columns that are shown */
	size_t widths[TABLE_COLUMNS_MAX];    /* of each of them */
	unsigned count;
	unsigned folded; /* the column that stands below its rows, or NO_COLUMN */
};

static const char *cell_text(const struct table *table, size_t row, unsigned column)
{
	const char *text = table->cells[row * table->column_count + column].text;

	return text ? text : "-";
}

/* Returns the width of the widest text in the column; 0: the column is left out. */
static size_t natural_width(const struct table *table, unsigned column)
{
	const char *title = table->columns[column].title;
	size_t width = text_columns(title, strlen(title));
	bool is_empty = true;

	for (size_t row = 0; row < table->rows; row++) {
		const char *text = cell_text(table, row, column);

		is_empty = is_empty &&
			   !table->cells[row * table->column_count + column].text;
		width = (size_t)max_i64(
			(int64_t)width, (int64_t)text_columns(text, strlen(text)));
	}
	return is_empty && table->columns[column].is_optional ? 0 : width;
}

/*
 * Chooses the columns to show: those of rank 0, then by rank while they fit.  Sets the widths of
 * the others to 0.
 */
static void layout_choose(
	const struct table *table, size_t width, size_t *widths, struct layout *layout)
{
	bool is_full = false;
	size_t total = 0;

	for (unsigned rank = 0; rank < TABLE_COLUMNS_MAX; rank++)
		for (unsigned i = 0; i < table->column_count; i++) {
			const struct table_column *column = &table->columns[i];
			size_t wanted = column->good && widths[i] > column->good
						? column->good
						: widths[i];

			if (!widths[i] || column->rank != rank)
				continue;
			if (!rank || !width || (!is_full && total + wanted <= width)) {
				total += wanted + GAP;
				continue;
			}
			widths[i] = 0;
			if (column->is_folded)
				layout->folded = i;
			else
				is_full = true;
		}
}

/* Cuts columns, the last one first, until they fit or have their least or good widths. */
static void layout_cut(
	const struct table *table, size_t over, bool is_good, struct layout *layout)
{
	for (unsigned i = layout->count; i-- > 0 && over;) {
		const struct table_column *column = &table->columns[layout->columns[i]];
		size_t least = is_good ? column->good : column->least;
		size_t has = layout->widths[i];
		size_t cut = least && has > least ? has - least : 0;

		cut = cut < over ? cut : over;
		layout->widths[i] -= cut;
		over -= cut;
	}
}

static size_t layout_excess(const struct layout *layout, size_t width)
{
	size_t total = 0;

	for (unsigned i = 0; i < layout->count; i++)
		total += layout->widths[i] + (i ? GAP : 0);
	return width && total > width ? total - width : 0;
}

static void layout_fit(const struct table *table, size_t width, struct layout *layout)
{
	size_t widths[TABLE_COLUMNS_MAX];

	layout->count = 0;
	layout->folded = NO_COLUMN;
	for (unsigned i = 0; i < table->column_count; i++)
		widths[i] = natural_width(table, i);
	layout_choose(table, width, widths, layout);
	for (unsigned i = 0; i < table->column_count; i++) {
		if (!widths[i])
			continue;
		layout->columns[layout->count] = i;
		layout->widths[layout->count++] = widths[i];
	}
	layout_cut(table, layout_excess(layout, width), true, layout);
	layout_cut(table, layout_excess(layout, width), false, layout);
}

/* --- writing ----------------------------------------------------------------------- */

static const char *const tint_codes[TINTS] = {
	[TINT_BOLD] = "\033[1m",
	[TINT_GREEN] = "\033[32m",
	[TINT_YELLOW] = "\033[33m",
	[TINT_RED] = "\033[31m",
	[TINT_BLUE] = "\033[34m",
};

/* Returns the size in bytes of the first @columns columns of @text. */
static size_t bytes_of_columns(const char *text, size_t columns)
{
	size_t size = 0;

	while (text[size] && text_columns(text, size + 1) <= columns)
		size++;
	return size;
}

static void print_blanks(size_t columns, FILE *out)
{
	(void)fprintf(out, "%*s", (int)columns, "");
}

/* Prints @text, cut to @width columns.  Returns its width. */
static size_t print_cut(const char *text, size_t width, FILE *out)
{
	size_t size = strlen(text), columns = text_columns(text, size);
	bool is_cut = columns > width;

	if (is_cut) {
		size = bytes_of_columns(text, width - 1);
		/* a wide character may leave a column free */
		columns = text_columns(text, size) + 1;
	}
	(void)fprintf(out, "%.*s%s", (int)size, text, is_cut ? ELLIPSIS : "");
	return columns;
}

/* A line that is being printed. */
struct line {
	const struct table_style *style;
	FILE *out;
	size_t left; /* columns up to the width of the style */
	bool is_full;
};

static void print_cell(struct line *line, const char *text, enum table_tint tint,
	size_t width, bool is_right, bool is_last)
{
	size_t taken, columns = text_columns(text, strlen(text));
	bool has_tint = line->style->has_colour && tint != TINT_NONE;

	if (line->left < width) {
		width = line->left;
		line->is_full = is_last = true;
	}
	if (is_right && columns < width)
		print_blanks(width - columns, line->out);
	if (has_tint)
		(void)fputs(tint_codes[tint], line->out);
	taken = print_cut(text, width, line->out);
	if (has_tint)
		(void)fputs("\033[0m", line->out);
	if (!is_right && !is_last)
		print_blanks(width - taken, line->out);
	line->left -= width;
}

static void print_line(const struct table *table, const struct layout *layout,
	const struct table_style *style, const struct table_cell *cells, FILE *out)
{
	struct line line = { style, out, style->width ? style->width : SIZE_MAX, false };

	for (unsigned i = 0; i < layout->count && !line.is_full; i++) {
		const struct table_column *column = &table->columns[layout->columns[i]];
		const struct table_cell *cell = cells ? &cells[layout->columns[i]] : NULL;
		const char *text = cell ? cell->text : column->title;

		if (i) {
			if (line.left <= GAP)
				break;
			print_blanks(GAP, out);
			line.left -= GAP;
		}
		print_cell(&line, text ? text : "-", cell ? cell->tint : TINT_BOLD,
			layout->widths[i], column->is_right, i + 1 == layout->count);
	}
	(void)fputc('\n', out);
}

/* Returns the size of the text that fits into @width columns, up to a blank if there is one. */
static size_t wrap_at(const char *text, size_t width)
{
	size_t size = bytes_of_columns(text, width);

	if (!text[size])
		return size;
	for (size_t at = size; at > 0; at--)
		if (text[at] == ' ')
			return at;
	return size;
}

/*
 * Ends a line in which @used columns are printed with @text.  What does not fit into the width goes
 * on in further lines, behind @indent blanks.  A width that leaves little room beside them counts
 * as unlimited.
 */
static void print_wrapped(const char *text, size_t used, size_t indent,
	const struct table_style *style, FILE *out)
{
	size_t width = style->width > 2 * indent ? style->width : 0;

	while (width && text_columns(text, strlen(text)) > width - used) {
		size_t size = wrap_at(text, width - used);

		(void)fprintf(out, "%.*s\n%*s", (int)size, text, (int)indent, "");
		text += size;
		text += strspn(text, " ");
		used = indent;
	}
	(void)fprintf(out, "%s\n", text);
}

/* Prints the text of the column that stands below its row. */
static void print_folded(const char *text, const struct table_style *style, FILE *out)
{
	if (style->width <= 2 * INDENT) {
		(void)print_cut(text, style->width, out);
		(void)fputc('\n', out);
		return;
	}
	print_blanks(INDENT, out);
	print_wrapped(text, INDENT, INDENT, style, out);
}

int table_print(const struct table *table, const struct table_style *style, FILE *out)
{
	struct layout layout;

	if (table->is_short_of_memory)
		return -ENOMEM;
	layout_fit(table, style->width, &layout);
	print_line(table, &layout, style, NULL, out);
	for (size_t row = 0; row < table->rows; row++) {
		const struct table_cell *cells = &table->cells[row * table->column_count];

		print_line(table, &layout, style, cells, out);
		if (layout.folded != NO_COLUMN && cells[layout.folded].text)
			print_folded(cells[layout.folded].text, style, out);
	}
	return 0;
}

/* --- lines ------------------------------------------------------------------------- */

void line_print(const char *text, const struct table_style *style, FILE *out)
{
	char printable[CELL_SIZE];
	struct text safe = TEXT_ON(printable);

	text_add_visible(&safe, text);
	print_wrapped(printable, 0, INDENT, style, out);
}

void line_print_labelled(
	const char *label, const char *text, const struct table_style *style, FILE *out)
{
	static char printable[LONG_SIZE];
	struct text safe = TEXT_ON(printable);

	text_add_visible(&safe, text);
	(void)fprintf(out, "%-*s", LABEL, label);
	print_wrapped(printable, LABEL, LABEL, style, out);
}

void line_print_cut(const char *text, const struct table_style *style, FILE *out)
{
	char printable[CELL_SIZE];
	struct text safe = TEXT_ON(printable);

	text_add_visible(&safe, text);
	(void)print_cut(printable, style->width ? style->width : SIZE_MAX, out);
	(void)fputc('\n', out);
}
