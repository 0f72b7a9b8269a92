#include <ctype.h>

#include "model_name.h"
#include "text.h"

static bool separates(char c)
{
	return c == ' ' || c == '-' || c == '_';
}

/* Returns the end of the part of @size bytes at @part if it is at @at in @name, else NULL. */
static const char *part_end(
	const char *name, const char *at, const char *part, size_t size)
{
	/* a number has to be whole */
	if (is_digit(part[0]) && at > name && is_digit(at[-1]))
		return NULL;
	for (size_t i = 0; i < size; i++, at++) {
		while (i && separates(*at))
			at++;
		if (tolower((unsigned char)*at) != tolower((unsigned char)part[i]))
			return NULL;
	}
	return is_digit(part[size - 1]) && is_digit(*at) ? NULL : at;
}

bool model_name_matches(const char *name, const char *type)
{
	const char *at = name, *end;
	size_t size;

	for (; *type; type += size) {
		while (separates(*type))
			type++;
		size = strcspn(type, " -_");
		if (!size)
			break;
		while (!(end = part_end(name, at, type, size)) && *at)
			at++;
		if (!end)
			return false;
		at = end;
	}
	return true;
}
