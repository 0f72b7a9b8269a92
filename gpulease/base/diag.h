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

/*
 * Returns the last line that diag() or note() printed, without "gpulease: "; "" if there was none.
 */
const char *diag_last(void);

/*
 * Prints a note of several lines, and moves *@lines past those that are printed.  Returns 0,
 * -EAGAIN if diag_hurry() would drop the next line, or another negative errno.
 */
MUST_CHECK int note_lines(const char **lines);

/*
 * From now on, drops a line for which stderr has no room for @ms: a full pipe, or a terminal that
 * Ctrl-S has stopped.  -1: a line waits as long as it takes, as at the start.  For a process that
 * has a lease or looks after jobs, and so must not wait for the reader of its stderr.
 */
void diag_hurry(int ms);

enum {
	DIAG_HURRY_MS = 100,     /* while there is something to watch */
	DIAG_PATIENCE_MS = 2000, /* before the end of a process that has GPUs */
};

/* Prints a detail; only with -v. */
void verbose(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
