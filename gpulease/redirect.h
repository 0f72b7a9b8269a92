/*
 * -o, -e, -i: the files that stdin, stdout and stderr of the command are.
 */
#ifndef GPULEASE_REDIRECT_H
#define GPULEASE_REDIRECT_H

#include "context.h"

/* By number; -1: inherited. */
struct redirection {
	int fds[3];
};

#define REDIRECTION_NONE ((struct redirection){ { -1, -1, -1 } })

/*
 * Opens the files of the settings for @job, as the user; new ones are made, others emptied.
 * Where stdout alone is named stderr goes there, too, as with srun; where both are one file
 * they are one descriptor, so that neither writes over the other.  0, or a negative errno
 * after the reason was told.
 */
MUST_CHECK int redirect_open(
	const struct context *context, uint64_t job, struct redirection *ret);

/*
 * Whether they can be opened, as far as that can be known before there is a ticket: where one's
 * folder depends on the id, nothing is.  0, or a negative errno after the reason was told.
 */
MUST_CHECK int redirect_check(const struct context *context);

/* What @pattern stands for in @job.  0, or a negative errno after the reason was told. */
MUST_CHECK int redirect_name(const struct context *context, uint64_t job,
	const char *pattern, char out[PATH_MAX]);

/* Makes them this process's.  0, or a negative errno after the reason was told. */
MUST_CHECK int redirect_apply(const struct redirection *redirection);

#endif
