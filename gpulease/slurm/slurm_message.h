/*
 * Messages of squeue, scancel and scontrol, which look as those of Slurm: scripts may look for
 * them.
 */
#ifndef GPULEASE_SLURM_MESSAGE_H
#define GPULEASE_SLURM_MESSAGE_H

#include "base.h"

/* Sets the name of the program, for the messages. */
void slurm_message_begin(const char *program);

/* Prints "PROGRAM: error: …" on stderr, made printable. */
void slurm_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* Prints a line on stderr without such a beginning. */
void slurm_line(const char *format, ...) PRINTF_LIKE(1, 2);

/* Checks that stdout has been written.  Returns @status, or 1 with a message if it has not. */
int slurm_finish(int status);

#endif
