/*
 * A part of a text, for those who read one line by line.  Pure.
 */
#ifndef GPULEASE_PART_H
#define GPULEASE_PART_H

#include "base.h"

/* What lies between two pointers. */
struct part {
	const char *begin, *end;
};

static inline size_t part_size(struct part part)
{
	return (size_t)(part.end - part.begin);
}

/* Whether @part is just @text. */
bool part_is(struct part part, const char *text);

/* Without the blanks at either end; a line may end as those of DOS do. */
struct part part_trim(struct part part);

/* What of @whole comes before the first @c, or all of it. */
struct part part_before(struct part whole, char c);

/* Cuts the first line off *@rest: what of it is no comment, without blanks at either end. */
struct part part_take_line(struct part *rest);

#endif
