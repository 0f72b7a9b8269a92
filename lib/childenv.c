#include <errno.h>

#include "childenv.h"

static bool is_changed(
	const char *entry, const struct childenv_change *changes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t size = strlen(changes[i].name);

		if (strncmp(entry, changes[i].name, size) == 0 && entry[size] == '=')
			return true;
	}
	return false;
}

int childenv_make(char *const from[], const char *without,
	const struct childenv_change *changes, size_t count, char ***ret)
{
	size_t entries = count + 1, bytes = 0, used = 0;
	char **out;
	char *text;

	for (size_t i = 0; from[i]; i++)
		entries++;
	for (size_t i = 0; i < count; i++)
		if (changes[i].value)
			bytes += strlen(changes[i].name) + strlen(changes[i].value) + 2;
	out = malloc(entries * sizeof(*out) + bytes);
	if (!out)
		return -ENOMEM;
	text = (char *)(out + entries);
	for (size_t i = 0; from[i]; i++)
		if (strncmp(from[i], without, strlen(without)) != 0 &&
			!is_changed(from[i], changes, count))
			out[used++] = from[i];
	for (size_t i = 0; i < count; i++) {
		if (!changes[i].value)
			continue;
		out[used++] = text;
		text += 1 + snprintf(text, bytes + 1, "%s=%s", changes[i].name,
				    changes[i].value);
	}
	out[used] = NULL;
	*ret = out;
	return 0;
}
