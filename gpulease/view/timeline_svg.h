/*
 * The timeline as a picture.  Positions along the time are in percent of the width, so the picture
 * fits any width, and the letters keep their size.  Pure, except for $TZ.
 */
#ifndef GPULEASE_TIMELINE_SVG_H
#define GPULEASE_TIMELINE_SVG_H

#include "markup.h"
#include "timeline_spans.h"

/* What all pictures and pages say. */
struct timeline_words {
	const char *host;       /* "": unknown */
	const char *user;       /* --user; NULL */
	uint64_t missing_lines; /* of the history */
};

/*
 * Appends the picture.  @is_file: a whole file, with a title, a ground and a legend; else for a
 * page, which has these itself, and timeline_style() in its head.
 */
void timeline_svg(const struct timeline *timeline, const struct timeline_words *words,
	bool is_file, struct markup *out);

/* Appends "GPUs of lab3, 2026-11-17 03:37 to 2026-11-24 03:37". */
void timeline_svg_title(const struct timeline *timeline,
	const struct timeline_words *words, struct markup *out);

#endif
