/*
 * Refuses a command that is no program, and says what the user probably meant.  gpulease itself has
 * no such texts (BARE in the Makefile): it becomes gpulease-view, which calls
 * missing_program_main().
 */
#ifndef GPULEASE_MISSING_PROGRAM_H
#define GPULEASE_MISSING_PROGRAM_H

/*
 * Prints why the command @word cannot run.  @error is that of find_program().  Returns the exit
 * status.
 */
int missing_program_refuse(const char *word, int error);

/* What gpulease-view is started with: this, `x` if the word is a file, else `-`, and the word. */
#define MISSING_PROGRAM_PART "missing="

/* Prints the message for @rest, which comes behind that.  Returns the exit status. */
int missing_program_main(const char *rest);

#endif
