/*
 * Refuses a command that is no program, and says what the user probably meant.
 */
#ifndef GPULEASE_MISSING_PROGRAM_H
#define GPULEASE_MISSING_PROGRAM_H

/*
 * Prints why the command @word cannot run.  @error is that of find_program().  Returns the exit
 * status.
 */
int missing_program_refuse(const char *word, int error);

#endif
