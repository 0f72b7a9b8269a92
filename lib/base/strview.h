/*
 * A view of a part of a text, for parsers that go line by line.  The text belongs to the caller
 * and has to outlive the view.  Pure.
 */
#ifndef GPULEASE_STRVIEW_H
#define GPULEASE_STRVIEW_H

#include "base.h"

/* The bytes from ->begin up to ->end, which is not part of the view.  There is no NUL. */
struct strview {
	const char *begin, *end;
};

static inline size_t strview_size(struct strview view)
{
	return (size_t)(view.end - view.begin);
}

/* Whether @view holds exactly @text. */
bool strview_is(struct strview view, const char *text);

/* Returns @view without the blanks at both ends.  CR counts, so that DOS lines can be read. */
struct strview strview_trim(struct strview view);

/* Returns the part of @view before the first @c, or all of it if there is no @c. */
struct strview strview_before(struct strview view, char c);

/*
 * Removes the first line from *@rest and returns it without its comment, which begins at `#`, and
 * without the blanks at both ends.
 */
struct strview strview_take_line(struct strview *rest);

#endif
