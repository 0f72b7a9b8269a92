/*
 * The colours of the users.  The hues are those of Okabe and Ito, which people with any kind of
 * colour blindness can tell apart.  After the last hue they begin again with a pattern.
 */
#ifndef GPULEASE_TIMELINE_COLOURS_H
#define GPULEASE_TIMELINE_COLOURS_H

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

#endif
