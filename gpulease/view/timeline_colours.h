/*
 * The colours of the users.  The hues are those of Okabe and Ito, which people with any kind of
 * colour blindness can tell apart.  After the last hue they begin again with a pattern.
 */
#ifndef GPULEASE_TIMELINE_COLOURS_H
#define GPULEASE_TIMELINE_COLOURS_H

#include "markup.h"
#include "timeline_spans.h"

enum timeline_pattern { PATTERN_NONE, PATTERN_LINES, PATTERN_DOTS, PATTERN_GRID };

struct timeline_colour {
	const char *light, *dark; /* on a light and on a dark ground */
	unsigned char terminal;   /* of the 256 colours of a terminal */
	bool needs_white;         /* letters on it are white */
};

enum { TIMELINE_HUES = 7, TIMELINE_GREY = TIMELINE_HUES, TIMELINE_COLOURS };

extern const struct timeline_colour timeline_colours[TIMELINE_COLOURS];

/* Returns the index of the colour of a place, and its pattern. */
unsigned timeline_hue(size_t place);
enum timeline_pattern timeline_pattern(size_t place);

/* --- markup -------------------------------------------------------------------------- */

enum { TIMELINE_CLASS_SIZE = 8, TIMELINE_SWATCH = 12 /* pixels */ };

/* Writes the class of a place, which is also a part of ids: "ua" to "uz", "u-rest". */
void timeline_class(size_t place, char out[TIMELINE_CLASS_SIZE]);

/* Appends the style sheet of the picture, also for the swatches of the page. */
void timeline_style(const struct timeline *timeline, struct markup *out);

/* Appends the patterns of all places: of time that was used, and at 0 %. */
void timeline_patterns(const struct timeline *timeline, struct markup *out);

/* Appends a rectangle for a place of the legend; @x is a length of SVG. */
void timeline_swatch(size_t place, const char *x, double y, struct markup *out);

#endif
