/*
 * --setup and --conda: a shell that runs these first and then becomes the command, so that
 * what they set reaches all of it.
 *
 * The shell is bash where it is in PATH, else /bin/sh.  conda comes first, then the user's
 * line; neither sees the arguments of the command.  Where either fails the shell says so on
 * stderr in one line, ends with that status, or with EXIT_MISUSE where the set-up has left it by
 * `exit 0`, and the command does not run.
 */
#ifndef GPULEASE_SETUP_H
#define GPULEASE_SETUP_H

#include "context.h"

/* Whether a shell stands before the command, which is then not looked for beforehand. */
bool setup_is_wanted(const struct settings *settings);

/* How many words setup_wrap() puts before the command; 0 where no shell is wanted. */
size_t setup_words(const struct settings *settings);

/*
 * *@ret becomes ->command with that shell before it.  A command that is a single word with
 * blanks or operators of the shell, and no program, is a line for it, and so is that of a jobs
 * file (->line): its words are then `eval` and that line.  Looks for conda and its environment,
 * as the user.  0, or an exit status after the reason was told.  The memory is one for the whole
 * run of the program.
 */
MUST_CHECK int setup_wrap(const struct settings *settings, char ***ret);

#endif
