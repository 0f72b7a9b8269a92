/*
 * The timeline as lines of a terminal: a row for each GPU, a letter and a colour for each user.
 * Pure but for memory, and for $TZ.
 */
#ifndef GPULEASE_TIMELINE_TEXT_H
#define GPULEASE_TIMELINE_TEXT_H

#include "render_table.h"
#include "timeline_svg.h"

/* Prints it.  ->width 0, unlimited, means 80 here.  Returns 0 or -ENOMEM. */
MUST_CHECK int timeline_text(const struct timeline *timeline,
	const struct timeline_words *words, const struct table_style *style, FILE *out);

/*
 * Sets @letters to @columns characters for the row, without a NUL: of each user a letter, a capital
 * one where most of its time is at 0 %, `?` where the end of its job was not seen, and `.` without
 * any job.  Where several users share a cell, the one with the most GPU time has it.  Sets @places
 * to the places of the users, or to TIMELINE_PLACES.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int timeline_letters(const struct timeline *timeline,
	const struct timeline_row *row, size_t columns, char *letters,
	unsigned char *places);

#endif
