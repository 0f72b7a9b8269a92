/*
 * Rejects a command line with options that exclude each other, or need another option.  Pure.
 *
 * What concerns the number of GPUs is in gpu_options.h, operands in verb_operands.h, and a value
 * that is wrong by itself in option_values.h.
 */
#ifndef GPULEASE_OPTION_CONFLICTS_H
#define GPULEASE_OPTION_CONFLICTS_H

#include "option_parser.h"
#include "settings.h"

/*
 * Checks that each given option has a meaning for @verb, and that no word before the command is
 * left over.  Returns 0, or -EINVAL with the message in @why.
 */
MUST_CHECK int option_conflicts_check_verb(
	const struct options_result *result, enum verb verb, struct why *why);

/*
 * Checks which options exclude each other, or need each other.  Returns 0, or -EINVAL with the
 * message in @why.
 */
MUST_CHECK int option_conflicts_check_pairs(const struct options_result *result,
	const struct settings *settings, struct why *why);

#endif
