/*
 * The width and the colours of standard output.
 */
#ifndef GPULEASE_TERMINAL_H
#define GPULEASE_TERMINAL_H

#include "render_table.h"

/*
 * The width is $COLUMNS.  If that is not set, a terminal has the width that it reports, and the
 * width of anything else is unlimited.  A terminal has colours unless $NO_COLOR is set or $TERM is
 * "dumb".
 */
struct table_style terminal_style(void);

#endif
