/*
 * Executing a program as a shell does, with the reason if that fails.
 */
#ifndef GPULEASE_EXECUTE_H
#define GPULEASE_EXECUTE_H

#include "text.h"

/*
 * Executes the file @program in place of this process; a script without `#!` by /bin/sh.  Returns
 * only if that fails: the exit status, with the reason in @why.
 */
int execute(const char *program, char **command, char **environment, struct why *why);

#endif
