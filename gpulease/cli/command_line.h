/*
 * Reads a command line into struct settings.  Pure, except that it looks whether $GPULEASE_TOKEN is
 * set: then srun runs a step of a job, and its -n counts tasks; and at the variables of a job
 * script.
 *
 * The steps and their files: option_parser.c reads the words by the table in option_table.c;
 * option_values.c reads the value of each option; option_conflicts.c rejects options that
 * exclude each other; gpu_options.c works out how many GPUs all options together ask for;
 * verb_operands.c checks the operands of verbs such as --cancel.
 */
#ifndef GPULEASE_COMMAND_LINE_H
#define GPULEASE_COMMAND_LINE_H

#include "settings.h"
#include "text.h"

/*
 * Reads @argv, and moves its operands to the front.  Returns 0, or -EINVAL when the command line
 * is wrong: @why then names the option and what to write instead, in one line, and the caller
 * exits with EXIT_MISUSE.  *@ret is set only on 0; it points into @argv.
 */
MUST_CHECK int command_line_parse(char **argv, struct settings *ret, struct why *why);

#endif
