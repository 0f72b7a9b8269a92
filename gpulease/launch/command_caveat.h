/*
 * Commands that start other programs without the GPUs of the lease: sudo and login shells drop
 * CUDA_VISIBLE_DEVICES, and the engines of containers ignore it.  And commands that need none: the
 * programs that ask Slurm.
 */
#ifndef GPULEASE_COMMAND_CAVEAT_H
#define GPULEASE_COMMAND_CAVEAT_H

#include "text.h"

/*
 * If @command starts a program without the GPUs of the lease, or one that needs none, appends to
 * @out what happens and what to write instead, and returns true.  Looks behind programs such as env
 * and nice, but not into the text of a shell.  Pure.
 */
bool command_caveat(char *const *command, struct text *out);

/* Prints that as a note. */
void command_caveat_note(char *const *command);

#endif
