/*
 * The file names of -o, -e and -i.  In a name `%j` is the id of the job (`%5j`: padded with zeros
 * to 5 digits), `%x` its name, `%u` the user, `%h` the host up to its first dot, `%t` the number
 * of the task, and `%%` is a `%`.  For srun `%N` is the host, `%A` the id of the array, `%a` the
 * index in it, `%J` the id and the number of the step, `%s` this number, and `%n` the number of the
 * host among those of the job (0 here).  For a job that is no array, `%A` is the id of the job, and
 * `%a` what Slurm writes then.  Pure.
 */
#ifndef GPULEASE_FILE_PATTERN_H
#define GPULEASE_FILE_PATTERN_H

#include "text.h"

struct file_pattern_values {
	uint64_t job;
	uint64_t array, index; /* ->array is 0: no array */
	unsigned task, step;
	const char *name, *user, *host;
};

/*
 * Checks @pattern, so that an error is reported before the job waits.  Returns 0, or -EINVAL when a
 * `%` has no meaning; @why then lists those that have.
 */
MUST_CHECK int file_pattern_check(const char *pattern, struct why *why);

/*
 * Writes @pattern with @values in it to the @size bytes at @out.  Returns 0; -EINVAL as above; or
 * -ENAMETOOLONG when it does not fit.  @out is a terminated text in each case.
 */
MUST_CHECK int file_pattern_expand(const char *pattern,
	const struct file_pattern_values *values, char *out, size_t size,
	struct why *why);

#endif
