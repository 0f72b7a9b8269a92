#include <errno.h>
#include <poll.h>
#include <stdarg.h>

#include "diag.h"
#include "text.h"

enum { LINE_SIZE = 1024 };

static const char own_name[] = "gpulease: ", ellipsis[] = "\xe2\x80\xa6";

static bool is_verbose, is_quiet;
static int patience_ms = -1;
static char last_line[LINE_SIZE + sizeof(ellipsis)];

void diag_setup(unsigned verbose_times, bool quiet)
{
	is_verbose = verbose_times > 0;
	is_quiet = quiet;
}

void diag_hurry(int ms)
{
	patience_ms = ms;
}

/*
 * Waits until a line can be written without waiting.  False: the patience has ended.  A pipe that
 * polls writable has 4096 bytes free.
 */
static bool diag_has_room(void)
{
	struct pollfd fd = { STDERR_FILENO, POLLOUT, 0 };

	return patience_ms < 0 || poll(&fd, 1, patience_ms) != 0;
}

/* Returns 0, -EAGAIN if there is no room, or a negative errno: stderr is gone. */
static int diag_write(const char *bytes, size_t size)
{
	if (!diag_has_room())
		return -EAGAIN;
	while (size) {
		ssize_t n = write(STDERR_FILENO, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		bytes += n;
		size -= (size_t)n;
	}
	return 0;
}

PRINTF_LIKE(2, 0)
static void diag_print(bool is_kept, const char *format, va_list args)
{
	char message[LINE_SIZE], line[sizeof(own_name) + sizeof(last_line) + 1];
	struct text text = TEXT_ON(line);
	int saved = errno, wanted = vsnprintf(message, sizeof(message), format, args);

	if (wanted >= 0) {
		text_add(&text, own_name);
		text_add_visible(&text, message);
		if ((size_t)wanted >= sizeof(message))
			text_add(&text, ellipsis);
		if (is_kept)
			text_copy(last_line, sizeof(last_line),
				line + sizeof(own_name) - 1);
		text_add(&text, "\n");
		(void)!diag_write(line, text.used);
	}
	errno = saved;
}

const char *diag_last(void)
{
	return last_line;
}

void diag(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	diag_print(true, format, args);
	va_end(args);
}

void note(const char *format, ...)
{
	va_list args;

	if (is_quiet)
		return;
	va_start(args, format);
	diag_print(true, format, args);
	va_end(args);
}

void verbose(const char *format, ...)
{
	va_list args;

	if (!is_verbose)
		return;
	va_start(args, format);
	diag_print(false, format, args);
	va_end(args);
}

int note_lines(const char **lines)
{
	int r = 0;

	while (**lines && !is_quiet) {
		size_t size = strcspn(*lines, "\n");
		char line[LINE_SIZE];
		struct text text = TEXT_ON(line);

		text_add(&text, own_name);
		text_add_printable(&text, *lines, size);
		text_add(&text, "\n");
		r = diag_write(line, text.used);
		if (r < 0)
			break;
		*lines += size + ((*lines)[size] != '\0');
	}
	return r;
}
