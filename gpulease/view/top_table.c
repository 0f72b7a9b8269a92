#include "top_parts.h"

/* --- which lines ----------------------------------------------------------------- */

/* Appends to the jobs of the frame, unless @job is one of them. */
static void note_job(const struct top_sheet *sheet, int64_t job)
{
	struct top_frame *frame = sheet->frame;
	unsigned bit = (unsigned)job % (64 * ARRAY_SIZE(sheet->noted->bits));
	uint64_t *word = &sheet->noted->bits[bit / 64];
	bool is_new = !(*word & UINT64_C(1) << bit % 64);

	/* without this bit, the search would take most of the time of a frame */
	*word |= UINT64_C(1) << bit % 64;
	for (size_t i = is_new ? 0 : frame->job_count; i-- > 0;)
		if (frame->jobs[i] == job)
			return;
	if (frame->job_count < ARRAY_SIZE(frame->jobs))
		frame->jobs[frame->job_count++] = job;
}

void top_walk_add(struct top_walk *walk, struct top_line line, int64_t job)
{
	if (job >= 0 && walk->has_jobs)
		note_job(walk->sheet, job);
	if (job >= 0 && job == walk->sheet->view->chosen_job)
		line.is_chosen = true;
	if (line.is_chosen && walk->chosen == NO_ITEM)
		walk->chosen = walk->count;
	if (walk->count >= walk->first && walk->count - walk->first < walk->room)
		walk->lines[walk->count - walk->first] = line;
	walk->count++;
}

/* --- which columns, and how wide ------------------------------------------------- */

struct layout {
	unsigned count;
	const struct top_column *columns[TOP_TABLE_COLUMNS];
	unsigned widths[TOP_TABLE_COLUMNS];
};

static struct top_cell cell_of(const struct top_sheet *sheet,
	const struct top_column *column, const struct top_line *line,
	char room[TOP_CELL_SIZE])
{
	struct top_cell cell = { .text = text_on(room, TOP_CELL_SIZE) };

	column->cell(sheet, line, &cell);
	return cell;
}

static const char *title_of(
	const struct top_sheet *sheet, const struct top_column *column)
{
	return sheet->view->is_clock && column->clock_title ? column->clock_title
							    : column->title;
}

static void layout_add(const struct top_sheet *sheet, const struct top_column *column,
	struct layout *layout)
{
	if (column->is_wide_only && !sheet->is_wide)
		return;
	layout->columns[layout->count] = column;
	layout->widths[layout->count++] = 0;
}

/* Widens the columns to what @line has in them. */
static void layout_widen(
	const struct top_sheet *sheet, const struct top_line *line, struct layout *layout)
{
	char room[TOP_CELL_SIZE];

	for (unsigned i = 0; i < layout->count; i++) {
		struct top_cell cell;

		if (!layout->columns[i]->most)
			continue;
		cell = cell_of(sheet, layout->columns[i], line, room);
		if (cell.takes_rest)
			return;
		layout->widths[i] = (unsigned)max_i64(
			layout->widths[i], top_columns(sheet->view, room));
	}
}

/* Leaves out empty columns, and keeps the others between their titles and their limits. */
static void layout_trim(const struct top_sheet *sheet, struct layout *layout)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < layout->count; i++) {
		const struct top_column *column = layout->columns[i];
		unsigned most = sheet->is_wide && column->wide_most ? column->wide_most
								    : column->most;
		int64_t title = (int64_t)strlen(title_of(sheet, column));
		int64_t floor = max_i64(title, column->usual);

		if (column->is_optional && !layout->widths[i])
			continue;
		layout->columns[kept] = column;
		layout->widths[kept++] =
			(unsigned)max_i64(floor, min_i64(most, layout->widths[i]));
	}
	layout->count = kept;
}

/* Cuts columns, the last one first, until the last one has its least width. */
static void layout_cut(const struct top_sheet *sheet, struct layout *layout)
{
	unsigned total = 0, width = top_width(sheet->view);
	struct top_column const *last = layout->columns[layout->count - 1];

	for (unsigned i = 0; i + 1 < layout->count; i++)
		total += layout->widths[i] + 1;
	total += last->least;
	for (unsigned i = layout->count - 1; i-- > 0 && total > width;) {
		unsigned least = layout->columns[i]->least, has = layout->widths[i];
		unsigned cut = least && has > least ? has - least : 0;

		cut = (unsigned)min_i64(cut, total - width);
		layout->widths[i] -= cut;
		total -= cut;
	}
}

static void layout_fit(const struct top_sheet *sheet, const struct top_column *columns,
	const struct top_line *lines, size_t count, struct layout *layout)
{
	layout->count = 0;
	for (; columns->title; columns++)
		layout_add(sheet, columns, layout);
	for (size_t i = 0; i < count; i++)
		layout_widen(sheet, &lines[i], layout);
	layout_trim(sheet, layout);
	layout_cut(sheet, layout);
}

/* --- drawing --------------------------------------------------------------------- */

static void draw_titles(const struct top_sheet *sheet, const struct layout *layout)
{
	struct pen pen;

	if (!pen_begin(&pen, sheet->frame, sheet->view, false))
		return;
	for (unsigned i = 0; i < layout->count; i++) {
		const struct top_column *column = layout->columns[i];
		const char *title = title_of(sheet, column);

		pen_skip(&pen, i ? 1 : 0);
		if (i + 1 == layout->count)
			pen_put(&pen, title, INK_BOLD);
		else
			pen_cell(&pen, title, layout->widths[i], column->is_right,
				INK_BOLD);
	}
	pen_end(&pen);
}

static void draw_line(const struct top_sheet *sheet, const struct layout *layout,
	const struct top_line *line)
{
	bool is_chosen = line->is_chosen;
	char room[TOP_CELL_SIZE];
	struct pen pen;

	if (!pen_begin(&pen, sheet->frame, sheet->view, is_chosen))
		return;
	for (unsigned i = 0; i < layout->count; i++) {
		const struct top_column *column = layout->columns[i];
		struct top_cell cell = cell_of(sheet, column, line, room);
		enum ink ink =
			line->is_foreign && cell.ink == INK_NONE ? INK_FAINT : cell.ink;

		/* without colours, this mark shows the chosen row */
		if (i == 1 && is_chosen && !sheet->view->has_colour)
			pen_put(&pen, ">", INK_NONE);
		else
			pen_skip(&pen, i ? 1 : 0);
		if (cell.takes_rest || i + 1 == layout->count) {
			pen_put(&pen, room, ink);
			break;
		}
		pen_cell(&pen, room, layout->widths[i], column->is_right, ink);
	}
	pen_end(&pen);
}

void top_table_draw(const struct top_sheet *sheet, const struct top_column *columns,
	const struct top_line *lines, size_t count)
{
	struct layout layout;

	layout_fit(sheet, columns, lines, count, &layout);
	draw_titles(sheet, &layout);
	for (size_t i = 0; i < count; i++)
		draw_line(sheet, &layout, &lines[i]);
}
