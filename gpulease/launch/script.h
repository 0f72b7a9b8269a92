/*
 * The script that a command is about to run, as far as the words of the command show it: `./x`,
 * `python x`, `bash x`.  Looks at the file with the user's rights alone.
 */
#ifndef GPULEASE_SCRIPT_H
#define GPULEASE_SCRIPT_H

#include "text.h"

/*
 * Whether the shell command @line runs a script that does not exist; then appends its name to @out.
 * False if a shell would have to expand the name, or if it is unknown what the first words run.
 */
bool script_is_missing(const char *line, struct text *out);

/* Prints a note if the script that @command runs begins with lines for sbatch. */
void script_note_directives(char *const command[]);

#endif
