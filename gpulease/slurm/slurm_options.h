/*
 * Reads the options of squeue, scancel and scontrol, in all spellings of getopt_long(3): joined
 * letters, long options that are abbreviated, options behind operands.
 */
#ifndef GPULEASE_SLURM_OPTIONS_H
#define GPULEASE_SLURM_OPTIONS_H

#include "base.h"

enum slurm_option_value { SLURM_NO_VALUE, SLURM_VALUE, SLURM_OPTIONAL_VALUE };

/*
 * One option.  A table of them ends with a row without a name.  Rows with the same letter are names
 * of one option, whose value belongs to the first of them.
 */
struct slurm_option {
	const char *name;
	const char *
		instead; /* what to do instead of this option, which is refused; or NULL */
	const char *variable; /* whose value counts if the option is not given; or NULL */
	unsigned char value;  /* enum slurm_option_value */
	char letter;          /* 0: none */
};

enum { SLURM_OPTIONS_MAX = 48 };

/*
 * Reads @argv into @values, one for each row of @table: NULL: not given; "": given without a value.
 * Prepares *@ret_rest, the words that are no options.  Returns 0, or -EINVAL after a message.
 */
MUST_CHECK int slurm_options_read(const struct slurm_option *table, char **argv,
	const char **values, char ***ret_rest);

/* Returns the value of option @name, which @table has. */
const char *slurm_options_value(
	const struct slurm_option *table, const char *const *values, const char *name);

#endif
