#include <sys/ioctl.h>

#include "parse.h"
#include "terminal.h"

enum { WIDTH_UNKNOWN = 80, WIDTH_MAX = 10000 };

/* Returns the width in $COLUMNS, which watch(1) sets for a command that it runs; 0: none. */
static unsigned width_from_environment(void)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width;

	if (!columns || parse_u64(columns, WIDTH_MAX, &width, NULL) < 0)
		return 0;
	return (unsigned)width;
}

struct table_style terminal_style(void)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	struct table_style style = { .width = width_from_environment() };
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return style;
	if (!style.width && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		style.width = size.ws_col;
	if (!style.width)
		style.width = WIDTH_UNKNOWN;
	style.has_colour = !(no_colour && no_colour[0]) && term && term[0] &&
			   strcmp(term, "dumb") != 0;
	return style;
}
