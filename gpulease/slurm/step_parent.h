/*
 * The parent of an exclusive step: it holds the locks of the step's GPUs (step_lock.h) as long as
 * it lives, and its command gets none of them.  So the GPUs are free as soon as the command has
 * ended, whatever processes it has left.
 *
 * It passes signals on, stops with the command, and ends as the command ends.  If it is killed, the
 * kernel kills the command.
 */
#ifndef GPULEASE_STEP_PARENT_H
#define GPULEASE_STEP_PARENT_H

/*
 * Runs `step LOCKS PROGRAM WORD...`: LOCKS are descriptors, "5,6", and the words are the command
 * with its name, which is executed by the path PROGRAM.  Returns the exit status.
 */
int step_parent_main(char **argv);

#endif
