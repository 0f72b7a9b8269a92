/*
 * --setup and --conda: a shell runs these first and then becomes the command, so that the command
 * has all that they set.
 *
 * The shell is bash if it is in PATH, else /bin/sh.  conda comes first, then the user's line;
 * neither sees the arguments of the command.  If one of them fails, the shell prints one line on
 * stderr and ends with the status of the failure, or with EXIT_MISUSE if the set-up left the shell
 * by `exit 0`.  The command does not run then.
 */
#ifndef GPULEASE_SETUP_H
#define GPULEASE_SETUP_H

#include "context.h"

/*
 * Whether a shell stands before the command.  Then the shell, not gpulease, looks for the command.
 */
bool setup_is_wanted(const struct run_environment *environment);

/* Returns how many words setup_wrap() puts before the command; 0 if no shell is wanted. */
size_t setup_words(const struct run_environment *environment);

/*
 * Makes *@ret: ->command with the shell and its script before it.  A command that is one word with
 * blanks or operators of the shell, and no program, is a line for the shell; so is the command of a
 * jobs file (->line).  Its words are then `eval` and that line.
 *
 * Looks for conda and its environment, as the user.  Returns 0, or an exit status after it has
 * printed the reason.  The memory is never freed: it is needed until exec.
 */
MUST_CHECK int setup_wrap(const struct run_environment *environment, char ***ret);

#endif
