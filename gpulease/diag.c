#include <errno.h>
#include <poll.h>
#include <stdarg.h>

#include "diag.h"
#include "text.h"

enum { LINE_SIZE = 1024, HURRY_MS = 100 };

static const char own_name[] = "gpulease: ", ellipsis[] = "\xe2\x80\xa6";

static bool is_verbose, is_quiet, is_hurried;
static char last[LINE_SIZE + sizeof(ellipsis)];

void diag_setup(unsigned verbose_times, bool quiet)
{
	is_verbose = verbose_times > 0;
	is_quiet = quiet;
}

void diag_hurry(bool hurries)
{
	is_hurried = hurries;
}

/* A pipe that has room has it for a line. */
static bool has_room(void)
{
	struct pollfd fd = { STDERR_FILENO, POLLOUT, 0 };

	return !is_hurried || poll(&fd, 1, HURRY_MS) != 0;
}

static bool write_all(const char *bytes, size_t size)
{
	if (!has_room())
		return false;
	while (size) {
		ssize_t n = write(STDERR_FILENO, bytes, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false; /* there is nobody left to tell */
		bytes += n;
		size -= (size_t)n;
	}
	return true;
}

PRINTF_LIKE(2, 0)
static void say(bool is_kept, const char *format, va_list args)
{
	char message[LINE_SIZE], line[sizeof(own_name) + sizeof(last) + 1];
	struct text text = TEXT_ON(line);
	int saved = errno, wanted = vsnprintf(message, sizeof(message), format, args);

	if (wanted >= 0) {
		text_add(&text, own_name);
		text_add_printable(&text, message, strlen(message));
		if ((size_t)wanted >= sizeof(message))
			text_add(&text, ellipsis);
		if (is_kept)
			text_copy(last, sizeof(last), line + sizeof(own_name) - 1);
		text_add(&text, "\n");
		(void)write_all(line, text.used);
	}
	errno = saved;
}

const char *diag_last(void)
{
	return last;
}

void diag(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(true, format, args);
	va_end(args);
}

void note(const char *format, ...)
{
	va_list args;

	if (is_quiet)
		return;
	va_start(args, format);
	say(true, format, args);
	va_end(args);
}

void verbose(const char *format, ...)
{
	va_list args;

	if (!is_verbose)
		return;
	va_start(args, format);
	say(false, format, args);
	va_end(args);
}

bool note_lines(const char *lines)
{
	bool good = true;

	while (*lines && !is_quiet) {
		size_t size = strcspn(lines, "\n");
		char line[LINE_SIZE];
		struct text text = TEXT_ON(line);

		text_add(&text, own_name);
		text_add_printable(&text, lines, size);
		text_add(&text, "\n");
		good = write_all(line, text.used) && good;
		lines += size + (lines[size] != '\0');
	}
	return good;
}
