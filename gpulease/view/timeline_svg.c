#include "parse.h"
#include "timeline_colours.h"
#include "timeline_marks.h"
#include "timeline_svg.h"
#include "timeline_ticks.h"

/* Lengths in pixels. */
enum {
	WIDTH = 1000, /* of the file; a page has another */
	BAR = 20,     /* the height of a whole GPU */
	LABEL = 16,   /* of the line above it */
	GAP = 8,      /* below it */
	AXIS = 18,    /* the labels of the time */
	TITLE = 32,   /* of a file */
	MARGIN = 16,  /* at the bottom of a file */
	LEGEND_LINE = 20,
	LEGEND_COLUMNS = 3,
	SWATCH = 12,
	NARROW = 360, /* the width at which words in bars still have to fit */
	LETTER = 8,   /* the width of a letter */
	TICKS = 8,    /* at most */
	MERGE_PARTS =
		2 * WIDTH, /* the shortest time that is merged is this part of all */
};

/* A picture that is being drawn. */
struct drawing {
	const struct timeline *timeline;
	const struct timeline_row *row;
	struct markup *out;
	size_t begin; /* where it begins in ->out */
	double top;   /* of the bar of the row */
};

static double height_of(double percent)
{
	return percent * BAR / 100;
}

/* Returns where a moment is, in percent of the width. */
static double x_of(const struct timeline *timeline, int64_t at_ms)
{
	return (double)(at_ms - timeline->from_ms) * 100 /
	       (double)(timeline->until_ms - timeline->from_ms);
}

/* How many places the legend has. */
static size_t place_count(const struct timeline *timeline)
{
	return timeline->user_count < TIMELINE_PLACES ? timeline->user_count
						      : TIMELINE_PLACES;
}

/* --- colours --------------------------------------------------------------------------- */

/* The id and the class of a place; the class of the rest is `rest`. */
static void add_class(size_t place, struct markup *out)
{
	if (place == TIMELINE_REST)
		markup_add(out, "rest");
	else
		markup_addf(out, "%c", timeline_letter(place));
}

static void add_hues(bool is_dark, struct markup *out)
{
	for (unsigned hue = 0; hue < TIMELINE_COLOURS; hue++)
		markup_addf(out, ".c%u{fill:%s}", hue,
			is_dark ? timeline_colours[hue].dark
				: timeline_colours[hue].light);
}

void timeline_svg_style(const struct timeline *timeline, struct markup *out)
{
	markup_add(out, "text{font:12px system-ui,sans-serif;fill:#222}"
			".d{fill:#666}.l{fill:#000;pointer-events:none}.w{fill:#fff}"
			".title{font-size:16px;font-weight:600}.ground{fill:#fff}"
			".lane{fill:#ececec}.g{stroke:#bbb}.k{stroke:#fff;fill:none}"
			".y{fill-opacity:.4}\n");
	add_hues(false, out);
	for (size_t place = 0; place < place_count(timeline); place++) {
		markup_add(out, "\n.");
		add_class(place, out);
		markup_add(out, "{fill:url(#p-");
		add_class(place, out);
		markup_add(out, ")}.");
		add_class(place, out);
		markup_add(out, ".z{fill:url(#z-");
		add_class(place, out);
		markup_add(out, ")}");
	}
	markup_add(out, "\n@media (prefers-color-scheme:dark){text{fill:#e4e4e4}"
			".d{fill:#a8a8a8}.l{fill:#000}.w{fill:#fff}.ground{fill:#161616}"
			".lane{fill:#2b2b2b}.g{stroke:#555}.k{stroke:#161616}\n");
	add_hues(true, out);
	markup_add(out, "}\n");
}

/* Appends the patterns of a place: of time that was used, and at 0 %. */
static void add_patterns(size_t place, struct markup *out)
{
	static const char *const lines[] = {
		[PATTERN_NONE] = "",
		[PATTERN_LINES] = "M0 2h8M0 6h8",
		[PATTERN_DOTS] = "M1 2h2M5 6h2",
		[PATTERN_GRID] = "M0 2h8M2 0v8",
	};
	unsigned hue = timeline_hue(place);
	enum timeline_pattern pattern = timeline_pattern(place);

	markup_add(out, "<pattern id=\"p-");
	add_class(place, out);
	markup_addf(out,
		"\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
		"<rect class=\"c%u\" width=\"8\" height=\"8\"/>",
		hue);
	if (pattern)
		markup_addf(out, "<path class=\"k\" d=\"%s\"%s/>", lines[pattern],
			pattern == PATTERN_DOTS ? " stroke-width=\"2\"" : "");
	markup_add(out, "</pattern>\n<pattern id=\"z-");
	add_class(place, out);
	markup_addf(out,
		"\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
		"patternTransform=\"rotate(45)\"><rect class=\"lane\" width=\"6\" "
		"height=\"6\"/><rect class=\"c%u\" width=\"3\" height=\"6\"/></pattern>\n",
		hue);
}

void timeline_svg_swatch(size_t place, const char *x, double y, struct markup *out)
{
	markup_add(out, "<rect class=\"");
	add_class(place, out);
	markup_addf(out, "\" x=\"%s\" y=\"%g\" width=\"%d\" height=\"%d\" rx=\"2\"/>", x,
		y, SWATCH, SWATCH);
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
	markup_addf(out, ", %s", length);
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
		markup_addf(out, ": %u jobs, %s h", mark->spans, hours);
	}
	add_moments(mark, out);
	format_duration(mark->until_ms - mark->from_ms, length);
	if (mark->part == PART_UNUSED && span)
		markup_addf(out, "; at 0 %% for %s", length);
	else if (mark->part == PART_UNUSED)
		markup_add(out, "; at 0 %");
	else if (mark->part == PART_UNSEEN)
		markup_add(out, "; its end was not seen");
	markup_add(out, "</title>");
}

/* Appends the name of the user to a bar that has room for it, or the letter. */
static void add_word(const struct drawing *drawing, const struct timeline_mark *mark)
{
	const struct timeline *timeline = drawing->timeline;
	double x = x_of(timeline, mark->from_ms);
	double room = (x_of(timeline, mark->until_ms) - x) * NARROW / 100 / LETTER;
	size_t length;

	if (!mark->span || mark->part != PART_USED || room < 1.2 ||
		height_of(mark->height) < 12)
		return;
	markup_addf(drawing->out, "<text class=\"l%s\" x=\"%.3f%%\" y=\"%.5g\" dx=\"3\">",
		timeline_colours[timeline_hue(mark->place)].needs_white ? " w" : "", x,
		drawing->top + height_of(mark->y + mark->height / 2) + 4);
	length = strlen(timeline->users[mark->span->user].name);
	if ((double)length < room)
		markup_text(drawing->out, timeline->users[mark->span->user].name);
	else
		markup_addf(drawing->out, "%c", timeline_letter(mark->place));
	markup_add(drawing->out, "</text>\n");
}

static void draw_mark(const struct timeline_mark *mark, void *taker)
{
	static const char *const classes[TIMELINE_PARTS] = { "", " z", " y" };
	const struct drawing *drawing = taker;
	const struct timeline *timeline = drawing->timeline;
	struct markup *out = drawing->out;
	double x = x_of(timeline, mark->from_ms);

	/* it is too large already, and will be drawn again */
	if (out->used - drawing->begin > TIMELINE_SVG_MAX)
		return;
	markup_add(out, "<rect class=\"");
	add_class(mark->place, out);
	markup_addf(out, "%s\" x=\"%.3f%%\" y=\"%.6g\" width=\"%.5g%%\" height=\"%.5g\">",
		classes[mark->part], x, drawing->top + height_of(mark->y),
		x_of(timeline, mark->until_ms) - x, height_of(mark->height));
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
		out, "<text y=\"%g\">%s <tspan class=\"d\">", drawing->top - 4, label);
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

/* Appends the rows, and returns the height of all of them. */
static void draw_rows(struct drawing *drawing, double top, int64_t merge_ms)
{
	const struct timeline *timeline = drawing->timeline;

	for (size_t i = 0; i < timeline->row_count; i++) {
		drawing->row = &timeline->rows[i];
		drawing->top = top + LABEL;
		add_row_label(drawing);
		timeline_marks(timeline, drawing->row, merge_ms, draw_mark, drawing);
		top += LABEL + height_of(drawing->row->height) + GAP;
	}
}

static double rows_height(const struct timeline *timeline)
{
	double height = 0;

	for (size_t i = 0; i < timeline->row_count; i++)
		height += LABEL + height_of(timeline->rows[i].height) + GAP;
	return height;
}

/* --- what is around the bars ----------------------------------------------------------------- */

/* Appends the grounds of the rows and over them the lines of the axis. */
static void draw_axis(const struct timeline *timeline, double top, struct markup *out)
{
	struct timeline_tick ticks[TICKS_MAX];
	size_t count =
		timeline_ticks(timeline->from_ms, timeline->until_ms, TICKS, ticks);
	double y = top + AXIS;

	for (size_t i = 0; i < timeline->row_count; i++) {
		markup_addf(out,
			"<rect class=\"lane\" y=\"%g\" width=\"100%%\" height=\"%g\"/>\n",
			y + LABEL, height_of(timeline->rows[i].height));
		y += LABEL + height_of(timeline->rows[i].height) + GAP;
	}
	for (size_t i = 0; i < count; i++) {
		double x = x_of(timeline, ticks[i].at_ms);

		markup_addf(out,
			"<line class=\"g\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%g\" "
			"y2=\"%g\"/>",
			x, x, top + 2, y - GAP);
		/* a label at the edge would be cut */
		if (x < 100 - 100.0 * 6 * LETTER / NARROW)
			markup_addf(out,
				"<text class=\"d\" x=\"%.3f%%\" y=\"%g\" "
				"dx=\"3\">%s</text>",
				x, top + 12, ticks[i].label);
		markup_add(out, "\n");
	}
}

static void add_user_figures(const struct timeline_user *user, struct markup *out)
{
	char hours[TIMELINE_HOURS_SIZE], wait[DURATION_SIZE];
	int64_t wait_ms = timeline_mean_wait_ms(user);

	timeline_format_hours(user->least, hours);
	markup_addf(out, "%s GPU hours", hours);
	if (wait_ms >= 0) {
		format_duration(wait_ms, wait);
		markup_addf(out, ", waits %s", wait);
	}
}

static void draw_legend(const struct timeline *timeline, double top, struct markup *out)
{
	static const char *const columns[LEGEND_COLUMNS] = { "0%", "33.3%", "66.6%" };

	for (size_t i = 0; i < place_count(timeline); i++) {
		const char *x = columns[i % LEGEND_COLUMNS];
		double y = top + (double)(i / LEGEND_COLUMNS * LEGEND_LINE);

		timeline_svg_swatch(i, x, y, out);
		markup_addf(out, "<text x=\"%s\" y=\"%g\" dx=\"18\">%c ", x, y + 10,
			timeline_letter(i));
		if (i == TIMELINE_REST) {
			markup_addf(out, "%zu more users",
				timeline->user_count - TIMELINE_REST);
		} else {
			markup_text(out, timeline->users[i].name);
			markup_add(out, " <tspan class=\"d\">");
			add_user_figures(&timeline->users[i], out);
			markup_add(out, "</tspan>");
		}
		markup_add(out, "</text>\n");
	}
}

static double legend_height(const struct timeline *timeline)
{
	size_t lines = (place_count(timeline) + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;

	return (double)((lines + 1) * LEGEND_LINE + MARGIN);
}

void timeline_svg_title(const struct timeline *timeline,
	const struct timeline_words *words, struct markup *out)
{
	char from[TIMELINE_MOMENT_SIZE], until[TIMELINE_MOMENT_SIZE];

	timeline_format_date(timeline->from_ms, from);
	timeline_format_date(timeline->until_ms, until);
	markup_add(out, "GPUs");
	if (words->host[0]) {
		markup_add(out, " of ");
		markup_text(out, words->host);
	}
	if (words->user) {
		markup_add(out, ", jobs of ");
		markup_text(out, words->user);
	}
	markup_addf(out, ", %s to %s", from, until);
}

/* The title and the description, for those who cannot see the picture. */
static void add_description(const struct timeline *timeline,
	const struct timeline_words *words, struct markup *out)
{
	enum { USERS_MAX = 10 };

	markup_add(out, "<title id=\"t\">");
	timeline_svg_title(timeline, words, out);
	markup_addf(out,
		"</title>\n<desc id=\"d\">A bar for each of %llu GPUs, with the jobs on it "
		"from left to right.",
		(unsigned long long)timeline_gpus(timeline));
	for (size_t i = 0; i < timeline->user_count && i < USERS_MAX; i++) {
		markup_add(out, " ");
		markup_text(out, timeline->users[i].name);
		markup_add(out, ": ");
		add_user_figures(&timeline->users[i], out);
		markup_add(out, ".");
	}
	if (!timeline->span_count)
		markup_add(out, " No job had a GPU.");
	markup_add(out, "</desc>\n");
}

/* --- all of it -------------------------------------------------------------------------------- */

static void draw_notes(const struct timeline *timeline, double y, struct markup *out)
{
	markup_addf(out, "<text class=\"d\" y=\"%g\">%s</text>\n", y,
		timeline->span_count
			? "Striped: at 0 % utilization. Pale: the end of the "
			  "job was not seen."
			: "No job had a GPU in this time.");
}

static void draw(const struct timeline *timeline, const struct timeline_words *words,
	bool is_file, int64_t merge_ms, struct markup *out)
{
	struct drawing drawing = { .timeline = timeline, .out = out, .begin = out->used };
	double top = is_file ? TITLE : 0, rows = rows_height(timeline);
	double height = top + AXIS + rows + (is_file ? legend_height(timeline) : 0);

	markup_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" xml:lang=\"en\" role=\"img\" "
		"aria-labelledby=\"t d\" width=\"%d\" height=\"%g\">\n",
		WIDTH, height);
	add_description(timeline, words, out);
	if (is_file) {
		markup_add(out, "<style>\n");
		timeline_svg_style(timeline, out);
		markup_add(out, "</style>\n");
	}
	markup_add(out, "<defs>\n");
	for (size_t place = 0; place < place_count(timeline); place++)
		add_patterns(place, out);
	markup_add(out, "</defs>\n");
	if (is_file) {
		markup_add(out,
			"<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n"
			"<text class=\"title\" x=\"0\" y=\"20\">");
		timeline_svg_title(timeline, words, out);
		markup_add(out, "</text>\n");
	}
	draw_axis(timeline, top, out);
	draw_rows(&drawing, top + AXIS, merge_ms);
	if (is_file) {
		draw_legend(timeline, top + AXIS + rows + MARGIN, out);
		draw_notes(timeline, height - 8, out);
	}
	markup_add(out, "</svg>\n");
}

void timeline_svg(const struct timeline *timeline, const struct timeline_words *words,
	bool is_file, struct markup *out)
{
	size_t begin = out->used;
	int64_t length_ms = timeline->until_ms - timeline->from_ms, merge_ms = 0;

	draw(timeline, words, is_file, merge_ms, out);
	while (out->used - begin > TIMELINE_SVG_MAX && merge_ms < length_ms) {
		merge_ms = merge_ms ? 2 * merge_ms : length_ms / MERGE_PARTS + 1;
		out->used = begin;
		draw(timeline, words, is_file, merge_ms, out);
	}
}
