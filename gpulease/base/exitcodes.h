/*
 * The exit statuses of gpulease itself.  The status of a command passes through; after a command
 * that signal N ended it is 128 + N.  This list makes the names below and the list in --help;
 * `make lint` compares it with the manual.
 */
#ifndef GPULEASE_EXITCODES_H
#define GPULEASE_EXITCODES_H

/* ROW(name, status, what it means) */
#define EXIT_CODES(ROW)                                                       \
	ROW(EXIT_DONE, 0, "done")                                             \
	ROW(EXIT_NOT_DONE, 1,                                                 \
		"an id is unknown, finished or not yours, or a check failed") \
	ROW(EXIT_GAVE_UP, 124, "gave up waiting")                             \
	ROW(EXIT_MISUSE, 125, "gpulease itself failed or was misused")        \
	ROW(EXIT_CANNOT_EXECUTE, 126, "the command cannot be executed")       \
	ROW(EXIT_NOT_FOUND, 127, "the command or its script was not found")

#define EXIT_CODES_NAME(name, status, meaning) name = (status),
enum exit_status { EXIT_CODES(EXIT_CODES_NAME) };
#undef EXIT_CODES_NAME

#endif
