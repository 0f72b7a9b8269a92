/*
 * Text of SVG and HTML in memory that grows.  All texts that are not ours go through markup_text():
 * the only place that knows what has to be escaped.  Pure but for memory.
 */
#ifndef GPULEASE_MARKUP_H
#define GPULEASE_MARKUP_H

#include "text.h"

struct markup {
	char *at; /* with a NUL behind it; NULL: nothing yet */
	size_t used, room;
	bool is_short_of_memory; /* something was left out */
};

#define MARKUP_EMPTY ((struct markup){ .at = NULL })

/* Append markup as it is. */
void markup_add(struct markup *markup, const char *text);
void markup_addf(struct markup *markup, const char *format, ...) PRINTF_LIKE(2, 3);

/*
 * Appends the text @text, which any program has written, for the content of an element or for a
 * value in double quotes.  Control characters, malformed UTF-8 and what XML does not allow become
 * `?`.
 */
void markup_text(struct markup *markup, const char *text);

/* Forgets the text, and keeps the memory. */
void markup_empty(struct markup *markup);

void markup_release(struct markup *markup);

#endif
