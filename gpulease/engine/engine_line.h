/*
 * The command line of gpulease, read for a cluster.
 *
 * It is read twice.  The first reading keeps the text of each option as it was given: options of
 * Slurm are passed on as they are, and some have forms on a cluster that one machine lacks.  The
 * second reading fills struct settings as on one machine, and skips the options that are passed on
 * or refused (engine_options.h).
 */
#ifndef GPULEASE_ENGINE_LINE_H
#define GPULEASE_ENGINE_LINE_H

#include "option_table.h"

struct engine_line {
	struct settings settings; /* ->request.gpus and what depends on it are not set */
	struct options_result given;     /* rows as in option_table */
	const char *values[OPTIONS_MAX]; /* of each row; NULL: not given, or left out */
};

/*
 * Reads @argv into @ret, which must not move.  Returns 0, or -EINVAL with the message in @why: the
 * line is wrong, or asks for what the engine refuses.
 */
MUST_CHECK int engine_line_read(char **argv, struct engine_line *ret, struct why *why);

/*
 * Reads @argv only as far as needed for --engine and --config: sets ->given and ->values.  Returns
 * 0, or -EINVAL with the message in @why.
 */
MUST_CHECK int engine_line_scan(char **argv, struct engine_line *ret, struct why *why);

/* Whether the option with the long name @name, or the letter "n", was given. */
bool engine_line_has(const struct engine_line *line, const char *name);

/* Returns the value of this option as it was given; NULL: none was. */
const char *engine_line_value(const struct engine_line *line, const char *name);

#endif
