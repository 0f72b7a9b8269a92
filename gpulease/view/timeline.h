/*
 * --timeline
 */
#ifndef GPULEASE_TIMELINE_H
#define GPULEASE_TIMELINE_H

#include "settings.h"

/* Returns the exit status, after a message if it is not EXIT_DONE. */
int timeline_main(const struct settings *settings);

#endif
