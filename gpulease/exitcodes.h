/*
 * The exit statuses of gpulease itself; a command's own status passes through, one that a
 * signal ended is 128 + its number.  The one list behind the names, --help and the
 * manual.
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
	ROW(EXIT_NOT_FOUND, 127, "the command was not found")

#define EXIT_CODES_NAME(name, status, meaning) name = (status),
enum exit_status { EXIT_CODES(EXIT_CODES_NAME) };
#undef EXIT_CODES_NAME

#endif
