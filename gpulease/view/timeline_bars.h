/*
 * The bars of the picture: a row for each GPU with its jobs.  Positions along the time are in
 * percent of the width, heights in pixels.  Pure, except for $TZ.
 */
#ifndef GPULEASE_TIMELINE_BARS_H
#define GPULEASE_TIMELINE_BARS_H

#include "markup.h"
#include "timeline_spans.h"

/* Pixels. */
enum {
	TIMELINE_BAR = 20,     /* the height of a whole GPU */
	TIMELINE_LABEL = 16,   /* of the line above it */
	TIMELINE_GAP = 8,      /* below it */
	TIMELINE_WIDTH = 1000, /* of a file; a page has another */
	TIMELINE_NARROW = 360, /* the width at which words still have to fit */
	TIMELINE_LETTER_WIDTH = 8,
};

/* The largest size of all bars, unless so many GPUs and users need more; short jobs are merged. */
enum { TIMELINE_BARS_MAX = 320 * 1024 };

/* Returns the height of @percent of a GPU. */
double timeline_pixels(double percent);

/* Returns the height of all rows. */
double timeline_bars_height(const struct timeline *timeline);

/* Appends the rows, the first at the height @top.  Without memory, @out says so. */
void timeline_bars(const struct timeline *timeline, double top, struct markup *out);

#endif
