/*
 * The timeline as a web page of one file, without scripts: the picture and a table of the users.
 * Pure, except for $TZ.
 */
#ifndef GPULEASE_TIMELINE_HTML_H
#define GPULEASE_TIMELINE_HTML_H

#include "timeline_svg.h"

/* Users in the table; one row sums up the others. */
enum { TIMELINE_TABLE_USERS = 100 };

/* Appends the page. */
void timeline_html(const struct timeline *timeline, const struct timeline_words *words,
	struct markup *out);

#endif
