#include "array.h"
#include "parse.h"
#include "timeline_bars.h"
#include "timeline_colours.h"
#include "timeline_marks.h"
#include "timeline_ticks.h"

enum {
	LARGE_PERCENT = 1, /* of the width: such a job keeps its tooltip */
	PATH_UNITS = 1000,
};

/*
 * Levels of detail: an element with a tooltip for each job; up to LEVEL_MERGED, one path for all
 * short jobs of a user, which are merged over ever longer times; then all jobs are, in columns.
 */
enum {
	LEVEL_JOBS,
	LEVEL_PATHS,
	LEVEL_MERGED = LEVEL_PATHS + 5,
	LEVELS = LEVEL_MERGED + 10
};

/* A picture that is being drawn. */
struct drawing {
	const struct timeline *timeline;
	const struct timeline_row *row;
	struct markup *out;
	double top; /* of the bar of the row */
	size_t end; /* up to where ->out may be filled */
	/* for paths */
	struct timeline_mark *marks;
	size_t mark_count, mark_room;
};

double timeline_pixels(double percent)
{
	return percent * TIMELINE_BAR / 100;
}

/* --- bars ------------------------------------------------------------------------------- */

static void add_moments(const struct timeline_mark *mark, struct markup *out)
{
	const struct timeline_span *span = mark->span;
	char from[TIMELINE_MOMENT_SIZE], until[TIMELINE_MOMENT_SIZE];

	timeline_format_moment(span ? span->from_ms : mark->from_ms, from);
	timeline_format_moment(span ? span->until_ms : mark->until_ms, until);
	markup_addf(out, ", %s to %s", from, span && span->is_running ? "now" : until);
}

static void add_job(const struct timeline_span *span, struct markup *out)
{
	char length[DURATION_SIZE];

	markup_addf(out, ": job %lld", (long long)span->job);
	if (span->attempt > 1)
		markup_addf(out, ", attempt %lld", (long long)span->attempt);
	if (span->name[0]) {
		markup_add(out, " ");
		markup_text(out, span->name);
	}
	format_duration(span->until_ms - span->from_ms, length);
	markup_add(out, ", ");
	markup_text(out, length); /* "<1s" */
}

/* Appends what a browser shows under the mouse. */
static void add_tooltip(const struct timeline *timeline, const struct timeline_mark *mark,
	struct markup *out)
{
	const struct timeline_span *span = mark->span;
	char length[DURATION_SIZE], hours[TIMELINE_HOURS_SIZE];

	markup_add(out, "<title>");
	if (span || mark->place != TIMELINE_REST)
		markup_text(out, timeline->users[span ? span->user : mark->place].name);
	else
		markup_add(out, "other users");
	if (span) {
		add_job(span, out);
	} else {
		timeline_format_hours(mark->gpu_time, hours);
		markup_addf(out, ": %s GPU hours", hours);
		if (mark->spans)
			markup_addf(out, " in %u jobs", mark->spans);
	}
	add_moments(mark, out);
	format_duration(mark->until_ms - mark->from_ms, length);
	if (mark->part == PART_UNUSED && span) {
		markup_add(out, "; at 0 % for ");
		markup_text(out, length);
	} else if (mark->part == PART_UNUSED) {
		markup_add(out, "; at 0 %");
	} else if (mark->part == PART_UNSEEN) {
		markup_add(out, "; its end was not seen");
	}
	markup_add(out, "</title>");
}

/* Appends the name of the user to a bar that has room for it, or the letter. */
static void add_word(const struct drawing *drawing, const struct timeline_mark *mark)
{
	const struct timeline *timeline = drawing->timeline;
	double x = timeline_x(timeline, mark->from_ms);
	double room = (timeline_x(timeline, mark->until_ms) - x) * TIMELINE_NARROW / 100 /
		      TIMELINE_LETTER_WIDTH;
	unsigned hue = timeline_hue(mark->place);
	size_t length;

	if (!mark->span || mark->part != PART_USED || room < 1.2 ||
		timeline_pixels(mark->height) < 12)
		return;
	markup_add(drawing->out, "<text class=\"word");
	if (timeline_colours[hue].needs_white)
		markup_add(drawing->out, " white");
	if (timeline_pattern(mark->place)) /* a border, so that it can be read */
		markup_addf(drawing->out, " h%u", hue);
	markup_addf(drawing->out, "\" x=\"%.3f%%\" y=\"%.5g\" dx=\"3\">", x,
		drawing->top + timeline_pixels(mark->y + mark->height / 2) + 4);
	length = strlen(timeline->users[mark->span->user].name);
	if ((double)length < room)
		markup_text(drawing->out, timeline->users[mark->span->user].name);
	else
		markup_addf(drawing->out, "%c", timeline_letter(mark->place));
	markup_add(drawing->out, "</text>\n");
}

static const char *const part_classes[TIMELINE_PARTS] = { "", " idle", " pale" };

static void draw_mark(const struct timeline_mark *mark, void *taker)
{
	const struct drawing *drawing = taker;
	const struct timeline *timeline = drawing->timeline;
	struct markup *out = drawing->out;
	double x = timeline_x(timeline, mark->from_ms);
	char name[TIMELINE_CLASS_SIZE];

	/* it is too large already, and will be drawn in less detail */
	if (out->used > drawing->end)
		return;
	timeline_class(mark->place, name);
	markup_addf(out,
		"<rect class=\"%s%s\" x=\"%.3f%%\" y=\"%.6g\" width=\"%.5g%%\" "
		"height=\"%.5g\">",
		name, part_classes[mark->part], x,
		drawing->top + timeline_pixels(mark->y),
		timeline_x(timeline, mark->until_ms) - x, timeline_pixels(mark->height));
	add_tooltip(timeline, mark, out);
	markup_add(out, "</rect>\n");
	add_word(drawing, mark);
}

static void add_row_label(const struct drawing *drawing)
{
	const struct timeline_row *row = drawing->row;
	struct markup *out = drawing->out;
	char label[TIMELINE_LABEL_SIZE];
	int64_t permille = timeline_permille(drawing->timeline, row->least, 1);

	timeline_format_row(row, label);
	markup_addf(
		out, "<text y=\"%g\">%s <tspan class=\"dim\">", drawing->top - 4, label);
	if (row->index >= 0 && permille >= 0)
		markup_addf(out, "%lld%% leased", (long long)(permille + 5) / 10);
	if (row->is_paused) {
		markup_add(out, ", paused");
		if (row->paused_by[0]) {
			markup_add(out, " by ");
			markup_text(out, row->paused_by);
		}
	}
	markup_add(out, "</tspan></text>\n");
}

/* --- paths ------------------------------------------------------------------------------ */

/* Draws a job that is large enough for a tooltip, and keeps anything else for the paths. */
static void keep_mark(const struct timeline_mark *mark, void *taker)
{
	struct drawing *drawing = taker;
	struct timeline_mark *marks;

	if (mark->span &&
		timeline_x(drawing->timeline, mark->span->until_ms) -
				timeline_x(drawing->timeline, mark->span->from_ms) >=
			LARGE_PERCENT) {
		draw_mark(mark, drawing);
		return;
	}
	marks = array_grow(
		drawing->marks, sizeof(*marks), drawing->mark_count, &drawing->mark_room);
	if (!marks) {
		drawing->out->is_short_of_memory = true;
		return;
	}
	drawing->marks = marks;
	marks[drawing->mark_count++] = *mark;
}

static int compare_marks(const void *a, const void *b)
{
	const struct timeline_mark *x = a, *y = b;

	if (x->place != y->place)
		return x->place < y->place ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	return (x->from_ms > y->from_ms) - (x->from_ms < y->from_ms);
}

/* Appends one path for marks of the same place and part.  Its unit is a thousandth of the width. */
static void draw_path(
	const struct drawing *drawing, const struct timeline_mark *marks, size_t count)
{
	const struct timeline *timeline = drawing->timeline;
	struct markup *out = drawing->out;
	char name[TIMELINE_CLASS_SIZE], hours[TIMELINE_HOURS_SIZE];
	uint64_t gpu_time = 0;

	timeline_class(marks->place, name);
	markup_addf(out, "<path class=\"%s%s\" d=\"", name, part_classes[marks->part]);
	for (size_t i = 0; i < count && out->used <= drawing->end; i++) {
		double x = timeline_x(timeline, marks[i].from_ms) * PATH_UNITS / 100;
		double width =
			timeline_x(timeline, marks[i].until_ms) * PATH_UNITS / 100 - x;

		markup_addf(out, "M%.2f %.5gh%.5gv%.5gh-%.5gz", x,
			timeline_pixels(marks[i].y), width,
			timeline_pixels(marks[i].height), width);
		gpu_time += marks[i].gpu_time;
	}
	timeline_format_hours(gpu_time, hours);
	markup_add(out, "\"><title>");
	if (marks->place == TIMELINE_REST)
		markup_add(out, "other users");
	else
		markup_text(out, timeline->users[marks->place].name);
	markup_addf(out, ": %s GPU hours in short jobs here</title></path>\n", hours);
}

/* Appends the paths of all marks that were kept, and forgets them. */
static void draw_paths(struct drawing *drawing)
{
	struct timeline_mark *marks = drawing->marks;
	double height = timeline_pixels(drawing->row->height);

	if (!drawing->mark_count)
		return;
	qsort(marks, drawing->mark_count, sizeof(*marks), compare_marks);
	markup_addf(drawing->out,
		"<svg y=\"%g\" width=\"100%%\" height=\"%g\" viewBox=\"0 0 %d %g\" "
		"preserveAspectRatio=\"none\">\n",
		drawing->top, height, PATH_UNITS, height);
	for (size_t first = 0, next; first < drawing->mark_count; first = next) {
		next = first + 1;
		while (next < drawing->mark_count &&
			marks[next].place == marks[first].place &&
			marks[next].part == marks[first].part)
			next++;
		draw_path(drawing, &marks[first], next - first);
	}
	markup_add(drawing->out, "</svg>\n");
	drawing->mark_count = 0;
}

/* --- rows ------------------------------------------------------------------------------- */

static void draw_bars(struct drawing *drawing, unsigned level)
{
	const struct timeline *timeline = drawing->timeline;
	const struct timeline_row *row = drawing->row;
	int64_t pixel_ms = (timeline->until_ms - timeline->from_ms) / TIMELINE_WIDTH + 1;
	int64_t merge_ms =
		level > LEVEL_PATHS ? pixel_ms << (level - LEVEL_PATHS - 1) : 0;

	if (level == LEVEL_JOBS)
		timeline_marks(timeline, row, 0, draw_mark, drawing);
	else if (level <= LEVEL_MERGED)
		timeline_marks(timeline, row, merge_ms, keep_mark, drawing);
	else if (timeline_columns(timeline, row,
			 (size_t)TIMELINE_WIDTH >> (level - LEVEL_MERGED - 1), keep_mark,
			 drawing) < 0)
		drawing->out->is_short_of_memory = true;
	draw_paths(drawing);
}

/* Draws the row in as much detail as @size bytes allow. */
static void draw_row(struct drawing *drawing, size_t size)
{
	drawing->end = drawing->out->used + size;
	add_row_label(drawing);
	for (unsigned level = 0; level < LEVELS; level++) {
		size_t bars = drawing->out->used;

		draw_bars(drawing, level);
		if (drawing->out->used <= drawing->end || level + 1 == LEVELS)
			break;
		drawing->out->used = bars;
	}
}

/*
 * Returns how many bytes a row may have so that all rows have @all: rows that need less than that,
 * by @sizes, leave the rest to the others.
 */
static size_t share_bytes(const size_t *sizes, size_t count, size_t all)
{
	size_t share = all, left = all, open = count, before = 0;

	while (open && open != before) {
		before = open;
		share = left / open;
		left = all;
		open = 0;
		for (size_t i = 0; i < count; i++) {
			if (sizes[i] <= share)
				left -= sizes[i];
			else
				open++;
		}
	}
	return share;
}

/* Goes to the row @at, of which the bar is at the height @top. */
static void go_to_row(struct drawing *drawing, size_t at, double top)
{
	drawing->row = &drawing->timeline->rows[at];
	drawing->top = top + TIMELINE_LABEL;
}

static double row_height(const struct timeline_row *row)
{
	return TIMELINE_LABEL + timeline_pixels(row->height) + TIMELINE_GAP;
}

/*
 * Sets @sizes to the bytes of the rows at this level, of those that had more than @least.  The rows
 * are drawn and forgotten.
 */
static void measure_rows(
	struct drawing *drawing, double top, unsigned level, size_t least, size_t *sizes)
{
	size_t begin = drawing->out->used;

	for (size_t i = 0; i < drawing->timeline->row_count; i++) {
		go_to_row(drawing, i, top);
		top += row_height(drawing->row);
		if (sizes[i] <= least)
			continue;
		drawing->end = begin + TIMELINE_BARS_MAX;
		add_row_label(drawing);
		draw_bars(drawing, level);
		sizes[i] = drawing->out->used - begin;
		drawing->out->used = begin;
	}
}

/* Draws all rows: first to see how large they are, then as large as they may be. */
static void draw_rows(struct drawing *drawing, double top)
{
	size_t count = drawing->timeline->row_count, share;
	size_t *sizes = calloc(count + 1, sizeof(*sizes));

	if (!sizes) {
		drawing->out->is_short_of_memory = true;
		return;
	}
	for (size_t i = 0; i < count; i++)
		sizes[i] = SIZE_MAX;
	measure_rows(drawing, top, LEVEL_JOBS, 0, sizes);
	share = share_bytes(sizes, count, TIMELINE_BARS_MAX);
	measure_rows(drawing, top, LEVEL_PATHS, share, sizes);
	share = share_bytes(sizes, count, TIMELINE_BARS_MAX);
	for (size_t i = 0; i < count; i++) {
		go_to_row(drawing, i, top);
		draw_row(drawing, sizes[i] < share ? sizes[i] : share);
		top += row_height(drawing->row);
	}
	free(sizes);
}

double timeline_bars_height(const struct timeline *timeline)
{
	double height = 0;

	for (size_t i = 0; i < timeline->row_count; i++)
		height += row_height(&timeline->rows[i]);
	return height;
}

void timeline_bars(const struct timeline *timeline, double top, struct markup *out)
{
	struct drawing drawing = { .timeline = timeline, .out = out };

	draw_rows(&drawing, top);
	free(drawing.marks);
}
