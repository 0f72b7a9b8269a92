/*
 * Names and numbers of signals, as kill(1) has them.  Pure.
 */
#ifndef GPULEASE_SIGNALS_H
#define GPULEASE_SIGNALS_H

#include "text.h"

/* Returns the number of the signal @name: "TERM", "SIGTERM", "term" or "15"; 0 if there is none. */
int signal_number(const char *name);

struct signal_name {
	char text[12];
};

/* Returns the name of signal @number, "TERM"; its digits if it has no name, "34". */
struct signal_name signal_name(int number);

#endif
