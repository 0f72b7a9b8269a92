/*
 * jsoncheck: checks that standard input is JSON, and prints values from it.
 *
 *	jsoncheck		exit status 0 if it is JSON, else 1 and where it is not
 *	jsoncheck PATH…		prints the values at the paths, a line each: gpus.0.state;
 *				strings without quotes but with their escapes
 *
 * A path that leads nowhere is exit status 1.
 */
#include "tool.h"

#include "../json_valid.h"

enum { INPUT_MAX = 8 << 20 };

/* Moves past `{` or `[`, or past one member and its comma; false at the end. */
static bool next_member(struct json_reader *reader)
{
	json_skip_space(reader);
	if (json_take(reader, ","))
		json_skip_space(reader);
	return !json_is_next(reader, '}') && !json_is_next(reader, ']');
}

/* Moves to the value of the member @name (@size bytes) of the current object or array. */
static bool enter(struct json_reader *reader, const char *name, size_t size)
{
	bool is_object = json_take(reader, "{");

	if (!is_object && !json_take(reader, "["))
		return false;
	for (unsigned at = 0; next_member(reader); at++) {
		char key[32];
		const char *from = key;
		size_t length = (size_t)snprintf(key, sizeof(key), "%u", at);

		if (is_object) {
			from = reader->at + 1;
			(void)json_take_string(reader);
			length = (size_t)(reader->at - from) - 1;
			json_skip_space(reader);
			(void)json_take(reader, ":");
			json_skip_space(reader);
		}
		if (length == size && memcmp(from, name, size) == 0)
			return true;
		(void)json_take_value(reader);
	}
	return false;
}

static bool print_path(const char *text, size_t size, const char *path)
{
	struct json_reader reader = { .at = text, .end = text + size };
	const char *from;

	json_skip_space(&reader);
	for (; *path; path += strspn(path, ".")) {
		size_t length = strcspn(path, ".");

		if (!enter(&reader, path, length))
			return false;
		path += length;
	}
	from = reader.at;
	(void)json_take_value(&reader);
	while (reader.at > from && strchr(" \n", reader.at[-1]))
		reader.at--;
	if (*from == '"') {
		from++;
		reader.at--;
	}
	printf("%.*s\n", (int)(reader.at - from), from);
	return true;
}

int main(int argc, char **argv)
{
	static char text[INPUT_MAX];
	size_t size = fread(text, 1, sizeof(text), stdin), at = 0;

	if (!json_is_valid(text, size, &at)) {
		printf("no JSON from byte %zu on: %.*s\n", at,
			(int)(size - at < 60 ? size - at : 60), text + at);
		return 1;
	}
	for (int i = 1; i < argc; i++)
		if (!print_path(text, size, argv[i])) {
			printf("nothing at '%s'\n", argv[i]);
			return 1;
		}
	return 0;
}
