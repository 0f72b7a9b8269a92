/*
 * What can be seen of processes, for people to read.
 */
#ifndef GPULEASE_PROCESS_H
#define GPULEASE_PROCESS_H

#include "base.h"

/*
 * Writes the command line of process @pid as one would type it, or else its name, to the
 * @size bytes at @out; any bytes may be in it.  False, and "", where it is not to be seen.
 */
bool process_command(uint32_t pid, char *out, size_t size);

/* Writes whose process @pid is; "" where it is not to be seen. */
void process_user(uint32_t pid, char *out, size_t size);

/* Whether process @pid is stopped, as by SIGSTOP. */
bool process_is_stopped(uint32_t pid);

#endif
