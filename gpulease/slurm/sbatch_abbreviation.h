/*
 * Abbreviated long options, which sbatch accepts: `--nodel=n1`, `--time-l=5`.
 */
#ifndef GPULEASE_SBATCH_ABBREVIATION_H
#define GPULEASE_SBATCH_ABBREVIATION_H

#include "option_parser.h"

/*
 * Writes out the abbreviated options of @argv, which begins with the name of the program, in memory
 * that the caller never frees.  What is no option of @table stays.  Returns 0; -EINVAL, with the
 * reason in @why, if an abbreviation fits several options; or -ENOMEM.
 */
MUST_CHECK int sbatch_abbreviation_expand(
	const struct option_def *table, char **argv, struct why *why);

#endif
