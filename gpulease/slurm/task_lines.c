#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "task_lines.h"

int bytes_add(struct bytes *bytes, const char *from, size_t size)
{
	size_t room = bytes->room ? bytes->room : 4096;
	char *at;

	while (room - bytes->used < size)
		room *= 2;
	if (room != bytes->room) {
		at = realloc(bytes->at, room);
		if (!at)
			return -ENOMEM;
		bytes->at = at;
		bytes->room = room;
	}
	if (size)
		memcpy(bytes->at + bytes->used, from, size);
	bytes->used += size;
	return 0;
}

static bool ends_line(char c)
{
	return c == '\n' || c == '\r';
}

/* Returns the size of the first line at @from with its end, "\r\n" too; 0: it has no end yet. */
static size_t line_size(const char *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (ends_line(from[i]))
			return i + 1 +
			       (from[i] == '\r' && i + 1 < size && from[i + 1] == '\n');
	return 0;
}

static int pass_on(
	struct task_lines *lines, const char *from, size_t size, struct bytes *out)
{
	int r = 0;

	if (!lines->is_in_line)
		r = bytes_add(out, lines->label, strlen(lines->label));
	if (r == 0)
		r = bytes_add(out, from, size);
	lines->is_in_line = !ends_line(from[size - 1]);
	return r;
}

int task_lines_take(struct task_lines *lines, const char *from, size_t size, bool is_last,
	struct bytes *out)
{
	struct bytes *rest = &lines->rest;
	size_t begin = 0, line;
	int r = bytes_add(rest, from, size);

	while (r == 0 && (line = line_size(rest->at + begin, rest->used - begin)) > 0) {
		r = pass_on(lines, rest->at + begin, line, out);
		begin += line;
	}
	if (r == 0 && rest->used > begin &&
		(is_last || rest->used - begin >= LINE_PART_MAX)) {
		r = pass_on(lines, rest->at + begin, rest->used - begin, out);
		begin = rest->used;
	}
	/* as srun: no line of another task begins behind a line with a label */
	if (r == 0 && is_last && lines->label[0] && lines->is_in_line) {
		r = bytes_add(out, "\n", 1);
		lines->is_in_line = false;
	}
	if (begin)
		memmove(rest->at, rest->at + begin, rest->used - begin);
	rest->used -= begin;
	return r;
}

void task_lines_label(struct task_lines *lines, unsigned task, unsigned count)
{
	int width = snprintf(NULL, 0, "%u", count - 1);

	(void)snprintf(lines->label, sizeof(lines->label), "%*u: ", width, task);
}
