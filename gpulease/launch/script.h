/*
 * The script that a command is about to run, as far as the words of the command show it: `./x`,
 * `python x`, `python -u x`, `bash x`.  Looks at the file with the user's rights alone.
 */
#ifndef GPULEASE_SCRIPT_H
#define GPULEASE_SCRIPT_H

#include "settings.h"
#include "text.h"

/*
 * Whether the command, or the line of a jobs file, runs a script that does not exist; then appends
 * its name to @out.  False if it is unknown what the first words run, or if the name may become
 * another one: by a shell, by --setup, or because it has GPUs in it.
 */
bool script_is_missing(const struct run_environment *environment, struct text *out);

/* Returns the program that runs the script @name: @python or bash; NULL: its name says nothing. */
const char *script_runner(const char *name, const char *python);

/* Returns the name of the python in $PATH: "python", or else "python3". */
const char *script_python(void);

/*
 * Returns the program that the shell command @line lacks before its first word, as script_runner():
 * a script that the shell does not find or cannot execute.  NULL: none.
 */
const char *script_lacks_runner(const char *line, const char *python);

/* Prints a note if the script that @command runs begins with lines for sbatch. */
void script_note_directives(char *const command[]);

#endif
