/*
 * The width and the colours of standard output.
 */
#ifndef GPULEASE_TERMINAL_H
#define GPULEASE_TERMINAL_H

#include "render_table.h"

/*
 * A terminal has the width $COLUMNS or, if that is not set, the width that it reports.  It has
 * colours unless $NO_COLOR is set or $TERM is "dumb".  Anything else has neither.
 */
struct table_style terminal_style(void);

#endif
