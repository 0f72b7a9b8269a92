/*
 * The file names of -o, -e and -i, in which `%j` is the job's id (`%5j`: padded with
 * zeros), `%x` its name, `%u` the user, `%h` the host up to its first dot, `%t` the number of
 * the task, of which there is one: 0, and `%%` a `%`.  Pure.
 */
#ifndef GPULEASE_PATTERN_H
#define GPULEASE_PATTERN_H

#include "text.h"

struct pattern_values {
	uint64_t job;
	const char *name, *user, *host;
};

/* 0, or -EINVAL: @why says which `%` is not known.  To be asked before a job waits. */
MUST_CHECK int pattern_check(const char *pattern, struct why *why);

/*
 * Writes @pattern with its values to the @size bytes at @out.  0; -EINVAL as above;
 * -ENAMETOOLONG where it does not fit.  @out is text even then.
 */
MUST_CHECK int pattern_expand(const char *pattern, const struct pattern_values *values,
	char *out, size_t size, struct why *why);

#endif
