/*
 * Messages on stderr: `gpulease: …`, each one line and one write, so that lines of several
 * processes do not mix.  Control characters and broken UTF-8 become `?`.  A line that is too long
 * is cut, and ends with an ellipsis.  No function here changes errno.
 */
#ifndef GPULEASE_DIAG_H
#define GPULEASE_DIAG_H

#include "base.h"

/* Sets how often -v and whether -Q was given.  Before this call notes are printed. */
void diag_setup(unsigned verbose, bool quiet);

/* Prints an error. */
void diag(const char *format, ...) PRINTF_LIKE(1, 2);

/* Prints what the user should know although it is no error; prints nothing with -Q. */
void note(const char *format, ...) PRINTF_LIKE(1, 2);

/* The last line that diag() or note() printed, without "gpulease: "; "" if there was none. */
const char *diag_last(void);

/* Prints a note of several lines.  Returns false if one of them could not be written. */
bool note_lines(const char *lines);

/*
 * With @hurries, drops a line from now on if stderr is a pipe that stays full for 100 ms.  For a
 * process that looks after jobs, and so must not wait for the reader of its stderr.
 */
void diag_hurry(bool hurries);

/* Prints a detail; only with -v. */
void verbose(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
