/*
 * -o, -e, -i: the files that become stdin, stdout and stderr of the command.
 *
 * All files are opened with the user's rights and umask.  A crash leaves an output file empty.
 */
#ifndef GPULEASE_REDIRECT_H
#define GPULEASE_REDIRECT_H

#include "context.h"

/* The descriptor for each of 0, 1, 2; -1: inherited.  Two may be one descriptor. */
struct redirection {
	int fds[3];
};

#define REDIRECTION_NONE ((struct redirection){ { -1, -1, -1 } })

/*
 * Opens the files of the settings for @job; creates or empties those for output, and makes their
 * folders where these are missing.  If only stdout
 * is given, stderr goes there, too, as with srun.  If both name one file, they share one
 * descriptor and so one offset: neither overwrites the other.  Returns 0, or a negative errno
 * after it has printed the reason; files that were opened before stay open in *@ret.
 */
MUST_CHECK int redirect_open(
	const struct context *context, uint64_t job, struct redirection *ret);

/*
 * Checks whether the files can be opened, as far as this can be known before there is a ticket: a
 * file is not checked if its folder depends on the job id.  Returns 0, or a negative errno after it
 * has printed the reason.
 */
MUST_CHECK int redirect_check(const struct context *context);

/*
 * Expands @pattern for @job: %j the job id, %x the name, …, see file_pattern.h.  Returns 0, or
 * -EINVAL after it has printed the reason.
 */
MUST_CHECK int redirect_name(const struct context *context, uint64_t job,
	const char *pattern, char out[PATH_MAX]);

/*
 * Makes the files stdin, stdout and stderr of this process.  Returns 0, or a negative errno after
 * it has printed the reason.
 */
MUST_CHECK int redirect_apply(const struct redirection *redirection);

#endif
