/*
 * How standard output wants to be written to.
 */
#ifndef GPULEASE_TERMINAL_H
#define GPULEASE_TERMINAL_H

#include "render_table.h"

/*
 * A terminal has a width: $COLUMNS where it is set, else what the terminal says; and colours,
 * unless $NO_COLOR is set or $TERM says that it is dumb.  Anything else has neither.
 */
struct table_style terminal_style(void);

#endif
