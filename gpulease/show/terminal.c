#include <sys/ioctl.h>

#include "parse.h"
#include "terminal.h"

enum { WIDTH_UNKNOWN = 80, WIDTH_MAX = 10000 };

static unsigned terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t width;

	if (columns && parse_u64(columns, WIDTH_MAX, &width, NULL) == 0 && width)
		return (unsigned)width;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return size.ws_col;
	return WIDTH_UNKNOWN;
}

struct table_style terminal_style(void)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct table_style style = { .width = 0 };

	if (!isatty(STDOUT_FILENO))
		return style;
	style.width = terminal_width();
	style.has_colour = !(no_colour && no_colour[0]) && term && term[0] &&
			   strcmp(term, "dumb") != 0;
	return style;
}
