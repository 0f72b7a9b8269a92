/*
 * --top
 */
#ifndef GPULEASE_TOP_H
#define GPULEASE_TOP_H

#include "settings.h"

/* Returns the exit status, after a message if it is not EXIT_DONE. */
int top_main(const struct settings *settings);

#endif
