/*
 * The timeline as a picture.  Positions along the time are in percent of the width, so the picture
 * fits any width, and the letters keep their size.  Pure, except for $TZ.
 */
#ifndef GPULEASE_TIMELINE_SVG_H
#define GPULEASE_TIMELINE_SVG_H

#include "markup.h"
#include "timeline_spans.h"

/* The largest picture, unless so many GPUs and users need more; short jobs are merged. */
enum { TIMELINE_SVG_MAX = 300 * 1024 };

/* What all pictures and pages say. */
struct timeline_words {
	const char *host;       /* "": unknown */
	const char *user;       /* --user; NULL */
	uint64_t missing_lines; /* of the history */
};

/*
 * Appends the picture.  @is_file: a whole file, with a title, a ground and a legend; else for a
 * page, which has these itself, and timeline_svg_style() in its head.
 */
void timeline_svg(const struct timeline *timeline, const struct timeline_words *words,
	bool is_file, struct markup *out);

/* Appends the style sheet, also for the swatches of the page. */
void timeline_svg_style(const struct timeline *timeline, struct markup *out);

/* Appends a swatch of @size pixels for a place of the legend, as an element of SVG. */
void timeline_svg_swatch(size_t place, const char *x, double y, struct markup *out);

/* Appends "GPUs of lab3, 2026-11-17 03:37 to 2026-11-24 03:37". */
void timeline_svg_title(const struct timeline *timeline,
	const struct timeline_words *words, struct markup *out);

#endif
