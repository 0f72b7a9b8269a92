/*
 * What gpulease says to people: one line on stderr, `gpulease: …`, written at once so
 * that lines of several processes do not mix.  Control characters and broken UTF-8 in it
 * become `?`; a line that is too long is cut and marked.  Nothing here touches errno.
 */
#ifndef GPULEASE_DIAG_H
#define GPULEASE_DIAG_H

#include "base.h"

/* How often -v was given and whether -Q was; until then notes are shown. */
void diag_setup(unsigned verbose, bool quiet);

/* An error, always shown. */
void diag(const char *format, ...) PRINTF_LIKE(1, 2);

/* Worth knowing, no error: not with -Q. */
void note(const char *format, ...) PRINTF_LIKE(1, 2);

/* The last of these two as it was shown, but for the name of the program; "": there was none. */
const char *diag_last(void);

/* A note of several lines; false where one of them could not be written. */
bool note_lines(const char *lines);

/*
 * For who has others to look after, and must not wait for whoever reads stderr: as long as it
 * hurries, a line that finds no room there within 100 ms is lost.
 */
void diag_hurry(bool hurries);

/* Only with -v. */
void verbose(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
