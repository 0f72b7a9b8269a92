/*
 * The names of signals, as kill(1) has them.  Pure.
 */
#ifndef GPULEASE_SIGNALS_H
#define GPULEASE_SIGNALS_H

#include "text.h"

/* The number of "TERM", "SIGTERM", "term" or "15"; 0: there is no such signal. */
int signal_number(const char *name);

/* "TERM"; "34" for one without a name. */
struct signal_name {
	char text[12];
};
struct signal_name signal_name(int number);

#endif
