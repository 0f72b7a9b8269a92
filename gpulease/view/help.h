/*
 * --help and --list-options, made from the table of options.  The caller checks @out for errors.
 */
#ifndef GPULEASE_HELP_H
#define GPULEASE_HELP_H

#include <stdio.h>

#include "settings.h"

/*
 * Prints the options that a new user needs; with @topic those of that group, or all for "all".
 * Returns 0, or -ENOENT when there is no such topic.
 */
MUST_CHECK int help_print(const char *topic, FILE *out);

/* Appends the list of topics: "run, choose, ..., all". */
void help_add_topics(struct text *out);

/* Prints the help that the command line asks for.  Returns an exit status. */
int help_main(const struct settings *settings);

/*
 * Prints a line for each spelling of an option: the spelling, what it takes (none, optional,
 * required, operands), its group (run, look, …) and the two fields of engine_help.h, with tabs
 * between them.  The checks of the completion, the manual and the engine read this.
 */
void options_print(FILE *out);

#endif
