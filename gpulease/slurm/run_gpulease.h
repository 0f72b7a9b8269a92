/*
 * Starting gpulease from the parts of gpulease-slurm.
 */
#ifndef GPULEASE_RUN_GPULEASE_H
#define GPULEASE_RUN_GPULEASE_H

#include <sys/types.h>

#include "base.h"

/*
 * Starts @words, with no signal blocked.  Unless @out is -1, it is the stdout of the new process.
 * Returns its pid, or a negative errno.
 */
MUST_CHECK pid_t run_gpulease_start(char **words, int out);

/* Waits for @child.  Returns its exit status, 128+n for signal n. */
int run_gpulease_await(pid_t child);

/*
 * Runs @words, whose first word is the path of gpulease, and reads the id that it prints; 0: none.
 * Returns its exit status; if it could not be started, EXIT_MISUSE after a message.
 */
int run_gpulease(char **words, uint64_t *ret_id);

/*
 * Checks that each of the jobs @ids, "12,15", has ended with another status than 0; waits for its
 * end.  Returns 0, or an exit status after a message.
 */
int run_gpulease_check_failed(const char *ids);

#endif
