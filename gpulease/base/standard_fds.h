/*
 * Descriptors 0, 1 and 2 of a process that was started with some of them closed.
 */
#ifndef GPULEASE_STANDARD_FDS_H
#define GPULEASE_STANDARD_FDS_H

/*
 * Opens /dev/null for each closed descriptor among 0, 1 and 2: else a state file could get that
 * number, and a message or the command would write into it.  Close-on-exec, so that the command
 * gets closed what was closed.
 */
void standard_fds_open(void);

#endif
