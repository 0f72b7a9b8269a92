/*
 * Finds out from the table of options what can come next on a command line.  The completion of the
 * shells (gpulease/completion) calls it, and does the rest.  Pure but for the output.
 */
#ifndef GPULEASE_COMPLETION_H
#define GPULEASE_COMPLETION_H

#include <stdio.h>

/*
 * Prints what the last of the @count words can be.  @words are those after the name of the program,
 * up to the one that is to be completed, which may be empty.  `--name=value` may be one word or, as
 * bash splits it, three.  Each line is a word, with an explanation after a tab if it is an option,
 * or stands for something that the shell knows:
 *
 *	@jobs, @gpus             ids, as --status --json has them
 *	@files, @folders, @users, @signals
 *	@command N               the words from N on, counted from 0, are a command of its own
 */
void completion_print(char **words, unsigned count, FILE *out);

#endif
