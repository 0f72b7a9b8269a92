#include "timeline_colours.h"

const struct timeline_colour timeline_colours[TIMELINE_COLOURS] = {
	{ "#e69f00", "#e69f00", 214, false },
	{ "#56b4e9", "#56b4e9", 74, false },
	{ "#009e73", "#12b886", 36, false },
	{ "#0072b2", "#3a8fd0", 25, true },
	{ "#d55e00", "#e8702a", 166, false },
	{ "#cc79a7", "#cc79a7", 175, false },
	{ "#f0e442", "#f0e442", 227, false },
	[TIMELINE_GREY] = { "#8a8a8a", "#9a9a9a", 246, false },
};

unsigned timeline_hue(size_t place)
{
	return place < TIMELINE_REST ? (unsigned)(place % TIMELINE_HUES) : TIMELINE_GREY;
}

enum timeline_pattern timeline_pattern(size_t place)
{
	if (place >= TIMELINE_REST)
		return PATTERN_NONE;
	return (enum timeline_pattern)(place / TIMELINE_HUES);
}

/* --- markup ------------------------------------------------------------------------------ */

void timeline_class(size_t place, char out[TIMELINE_CLASS_SIZE])
{
	if (place == TIMELINE_REST)
		text_copy(out, TIMELINE_CLASS_SIZE, "u-rest");
	else
		(void)snprintf(out, TIMELINE_CLASS_SIZE, "u%c", timeline_letter(place));
}

static void add_hues(bool is_dark, struct markup *out)
{
	for (unsigned hue = 0; hue < TIMELINE_COLOURS; hue++) {
		const char *colour = is_dark ? timeline_colours[hue].dark
					     : timeline_colours[hue].light;

		markup_addf(
			out, ".c%u{fill:%s}.h%u{stroke:%s}", hue, colour, hue, colour);
	}
}

void timeline_style(const struct timeline *timeline, struct markup *out)
{
	markup_add(out, "text{font:12px system-ui,sans-serif;fill:#222}"
			".dim{fill:#666}.word{fill:#000;pointer-events:none;"
			"stroke-width:5;paint-order:stroke}"
			".white{fill:#fff}.title{font-size:16px;font-weight:600}"
			".ground{fill:#fff}.lane{fill:#ececec}.tick{stroke:#bbb}"
			".mesh{stroke:#fff;fill:none}.pale{fill-opacity:.4}\n");
	add_hues(false, out);
	for (size_t place = 0; place < timeline_places(timeline); place++) {
		char name[TIMELINE_CLASS_SIZE];

		timeline_class(place, name);
		markup_addf(out, "\n.%s{fill:url(#p-%s)}.%s.idle{fill:url(#z-%s)}", name,
			name, name, name);
	}
	markup_add(out, "\n@media (prefers-color-scheme:dark){text{fill:#e4e4e4}"
			".dim{fill:#a8a8a8}.word{fill:#000}.ground{fill:#161616}"
			".lane{fill:#2b2b2b}.tick{stroke:#555}.mesh{stroke:#161616}\n");
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
	char name[TIMELINE_CLASS_SIZE];

	timeline_class(place, name);
	markup_addf(out,
		"<pattern id=\"p-%s\" width=\"8\" height=\"8\" "
		"patternUnits=\"userSpaceOnUse\">"
		"<rect class=\"c%u\" width=\"8\" height=\"8\"/>",
		name, hue);
	if (pattern)
		markup_addf(out, "<path class=\"mesh\" d=\"%s\"%s/>", lines[pattern],
			pattern == PATTERN_DOTS ? " stroke-width=\"2\"" : "");
	markup_addf(out,
		"</pattern>\n<pattern id=\"z-%s\" width=\"6\" height=\"6\" "
		"patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
		"<rect class=\"lane\" width=\"6\" height=\"6\"/>"
		"<rect class=\"c%u\" width=\"3\" height=\"6\"/></pattern>\n",
		name, hue);
}

void timeline_patterns(const struct timeline *timeline, struct markup *out)
{
	for (size_t place = 0; place < timeline_places(timeline); place++)
		add_patterns(place, out);
}

void timeline_swatch(size_t place, const char *x, double y, struct markup *out)
{
	char name[TIMELINE_CLASS_SIZE];

	timeline_class(place, name);
	markup_addf(out,
		"<rect class=\"%s\" x=\"%s\" y=\"%g\" width=\"%d\" height=\"%d\" "
		"rx=\"2\"/>",
		name, x, y, TIMELINE_SWATCH, TIMELINE_SWATCH);
}
