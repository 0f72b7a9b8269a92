#include "parse.h"
#include "timeline_bars.h"
#include "timeline_colours.h"
#include "timeline_svg.h"
#include "timeline_ticks.h"

/* Lengths in pixels. */
enum {
	AXIS = 18,   /* the labels of the time */
	TITLE = 32,  /* of a file */
	MARGIN = 16, /* of a file */
	LEGEND_LINE = 20,
	LEGEND_COLUMNS = 3,
	NAME_COLUMNS = 14, /* of letters */
	TICKS = 8,         /* at most */
};

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
			y + TIMELINE_LABEL, timeline_pixels(timeline->rows[i].height));
		y += TIMELINE_LABEL + timeline_pixels(timeline->rows[i].height) +
		     TIMELINE_GAP;
	}
	for (size_t i = 0; i < count; i++) {
		double x = timeline_x(timeline, ticks[i].at_ms);

		markup_addf(out,
			"<line class=\"tick\" x1=\"%.3f%%\" x2=\"%.3f%%\" y1=\"%g\" "
			"y2=\"%g\"/>",
			x, x, top + 2, y - TIMELINE_GAP);
		/* a label at the edge would be cut */
		if (x < 100 - 100.0 * 6 * TIMELINE_LETTER_WIDTH / TIMELINE_NARROW)
			markup_addf(out,
				"<text class=\"dim\" x=\"%.3f%%\" y=\"%g\" "
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
		markup_add(out, ", waits ");
		markup_text(out, wait);
	}
}

/* Appends as much of a name as a column of the legend has room for. */
static void add_short_name(const char *name, struct markup *out)
{
	char cut[MACHINE_NAME_SIZE];
	size_t size = 0;

	/* a byte 10xxxxxx goes on with a character */
	while (name[size] && (text_columns(name, size + 1) <= NAME_COLUMNS ||
				     (name[size] & 0xc0) == 0x80))
		size++;
	text_copy(cut, size + 1 < sizeof(cut) ? size + 1 : sizeof(cut), name);
	markup_text(out, cut);
	if (name[size])
		markup_add(out, "…");
}

static void draw_legend(const struct timeline *timeline, double top, struct markup *out)
{
	static const char *const columns[LEGEND_COLUMNS] = { "0%", "33.3%", "66.6%" };

	for (size_t i = 0; i < timeline_places(timeline); i++) {
		const char *x = columns[i % LEGEND_COLUMNS];
		size_t line = i / LEGEND_COLUMNS;
		double y = top + (double)(line * LEGEND_LINE);

		timeline_swatch(i, x, y, out);
		markup_addf(out, "<text x=\"%s\" y=\"%g\" dx=\"18\">%c ", x, y + 10,
			timeline_letter(i));
		if (i == TIMELINE_REST) {
			markup_addf(out, "%zu more users",
				timeline->user_count - TIMELINE_REST);
		} else {
			add_short_name(timeline->users[i].name, out);
			markup_add(out, " <tspan class=\"dim\">");
			add_user_figures(&timeline->users[i], out);
			markup_add(out, "</tspan>");
		}
		markup_add(out, "</text>\n");
	}
}

static double legend_height(const struct timeline *timeline)
{
	size_t lines = (timeline_places(timeline) + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS;

	return (double)((lines + 1) * LEGEND_LINE + 2 * MARGIN);
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
	markup_addf(out, "<text class=\"dim\" y=\"%g\">%s</text>\n", y,
		timeline->span_count
			? "Striped: at 0 % utilization. Pale: the end of the "
			  "job was not seen."
			: "No job had a GPU in this time.");
}

void timeline_svg(const struct timeline *timeline, const struct timeline_words *words,
	bool is_file, struct markup *out)
{
	double top = is_file ? TITLE : 0, rows = timeline_bars_height(timeline);
	double height = top + AXIS + rows + (is_file ? legend_height(timeline) : 0);

	markup_addf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" xml:lang=\"en\" role=\"img\" "
		"aria-labelledby=\"t d\" width=\"%d\" height=\"%g\">\n",
		TIMELINE_WIDTH, height);
	add_description(timeline, words, out);
	if (is_file) {
		markup_add(out, "<style>\n");
		timeline_style(timeline, out);
		markup_add(out, "</style>\n");
	}
	markup_add(out, "<defs>\n");
	timeline_patterns(timeline, out);
	markup_add(out, "</defs>\n");
	if (is_file) {
		markup_addf(out,
			"<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n"
			"<svg x=\"%d\" width=\"%d\" height=\"%g\">\n"
			"<text class=\"title\" y=\"22\">",
			MARGIN, TIMELINE_WIDTH - 2 * MARGIN, height);
		timeline_svg_title(timeline, words, out);
		markup_add(out, "</text>\n");
	}
	draw_axis(timeline, top, out);
	timeline_bars(timeline, top + AXIS, out);
	if (is_file) {
		draw_legend(timeline, top + AXIS + rows + MARGIN, out);
		draw_notes(timeline, height - MARGIN, out);
		markup_add(out, "</svg>\n");
	}
	markup_add(out, "</svg>\n");
}
