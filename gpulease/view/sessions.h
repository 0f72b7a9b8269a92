/*
 * --sessions: lists the sessions of --screen.
 */
#ifndef GPULEASE_SESSIONS_H
#define GPULEASE_SESSIONS_H

#include "settings.h"

/* Asks tmux and screen, and prints a table or JSON.  Returns the exit status. */
int sessions_main(const struct settings *settings);

#endif
