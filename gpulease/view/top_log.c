#include <fcntl.h>
#include <sys/stat.h>

#include "top_log.h"

enum { TAIL_SIZE = 8192 };

/* Returns where the line before @end begins, not before @begin. */
static const char *line_begin(const char *begin, const char *end)
{
	while (end > begin && end[-1] != '\n')
		end--;
	return end;
}

/* Returns the end of a colour or another sequence ESC [ …, which begins at @at. */
static const char *skip_sequence(const char *at, const char *end)
{
	for (at += 2; at < end && (*at < '@' || *at > '~'); at++)
		;
	return at < end ? at + 1 : end;
}

/* Adds a line to the ones below it, which are taken first. */
static void add_line(struct top_view *view, const char *line, const char *end)
{
	char plain[TOP_LOG_LINE_SIZE];
	struct text text =
		text_on(view->log[TOP_LOG_LINES - 1 - view->log_count], sizeof(plain));
	const char *again;
	size_t size = 0;

	while (end > line && (end[-1] == '\r' || end[-1] == ' '))
		end--;
	again = memrchr(line, '\r', (size_t)(end - line));
	if (again)
		line = again + 1;
	if (line == end && !view->log_count)
		return;
	while (line < end && size < sizeof(plain)) {
		if (end - line > 1 && line[0] == '\033' && line[1] == '[') {
			line = skip_sequence(line, end);
			continue;
		}
		plain[size++] = *line == '\t' ? ' ' : *line;
		line++;
	}
	text_add_printable(&text, plain, size);
	view->log_count++;
}

void top_log_take(struct top_view *view, const char *bytes, size_t size, bool is_cut)
{
	const char *end = bytes + size;

	view->log_count = 0;
	while (end > bytes && view->log_count < TOP_LOG_LINES) {
		const char *line;

		if (end[-1] == '\n')
			end--;
		line = line_begin(bytes, end);
		if (line > bytes || !is_cut || !view->log_count)
			add_line(view, line, end);
		end = line;
	}
	if (view->log_count) /* they are at the end of ->log */
		memmove(view->log[0], view->log[TOP_LOG_LINES - view->log_count],
			view->log_count * sizeof(view->log[0]));
}

void top_log_read(struct top_view *view, const char *path)
{
	char bytes[TAIL_SIZE];
	autofd int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	off_t at;
	ssize_t n;

	view->log_count = 0;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	at = (off_t)max_i64(0, st.st_size - TAIL_SIZE);
	n = pread(fd, bytes, sizeof(bytes), at);
	if (n > 0)
		top_log_take(view, bytes, (size_t)n, at > 0);
}
