/*
 * The command line, user and state of a process, as people read them.  Reads /proc.
 */
#ifndef GPULEASE_PROCESS_INFO_H
#define GPULEASE_PROCESS_INFO_H

#include "base.h"

/*
 * Writes the command line of process @pid as a user would type it, or else the name of the process,
 * to the @size bytes at @out.  The text may contain any bytes.  Returns false, and writes "", if
 * /proc does not show the process.
 */
bool process_info_command(uint32_t pid, char *out, size_t size);

/*
 * Completes the command in the @size bytes at @command from the command line of process @pid, if it
 * ends with `…` because its record had no room for the rest.  If @command has no room for all of
 * it, it still ends with `…`.  @pid is 0 if the process is not known.
 */
void process_info_complete(uint32_t pid, char *command, size_t size);

/* Writes the user of process @pid to @out; "" if /proc does not show it. */
void process_info_user(uint32_t pid, char *out, size_t size);

/* Whether process @pid is stopped, as by SIGSTOP. */
bool process_info_is_stopped(uint32_t pid);

#endif
