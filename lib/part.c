#include "part.h"

bool part_is(struct part part, const char *text)
{
	size_t size = strlen(text);

	return part_size(part) == size && (!size || memcmp(part.begin, text, size) == 0);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

struct part part_trim(struct part part)
{
	while (part.begin < part.end && is_blank(*part.begin))
		part.begin++;
	while (part.end > part.begin && is_blank(part.end[-1]))
		part.end--;
	return part;
}

struct part part_before(struct part whole, char c)
{
	const char *found =
		part_size(whole) ? memchr(whole.begin, c, part_size(whole)) : NULL;

	return (struct part){ whole.begin, found ? found : whole.end };
}

struct part part_take_line(struct part *rest)
{
	struct part line = part_before(*rest, '\n');

	rest->begin = line.end < rest->end ? line.end + 1 : rest->end;
	return part_trim(part_before(line, '#'));
}
