#include "strview.h"
#include "text.h"

bool strview_is(struct strview view, const char *text)
{
	size_t size = strlen(text);

	return strview_size(view) == size &&
	       (!size || memcmp(view.begin, text, size) == 0);
}

struct strview strview_trim(struct strview view)
{
	while (view.begin < view.end && is_blank(*view.begin))
		view.begin++;
	while (view.end > view.begin && is_blank(view.end[-1]))
		view.end--;
	return view;
}

struct strview strview_before(struct strview view, char c)
{
	const char *found =
		strview_size(view) ? memchr(view.begin, c, strview_size(view)) : NULL;

	return (struct strview){ view.begin, found ? found : view.end };
}

struct strview strview_take_line(struct strview *rest)
{
	struct strview line = strview_before(*rest, '\n');

	rest->begin = line.end < rest->end ? line.end + 1 : rest->end;
	return strview_trim(strview_before(line, '#'));
}
