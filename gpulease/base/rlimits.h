/*
 * Resource limits and signal dispositions that gpulease changes for itself, and restores before it
 * executes the command; and the tag of a lease, which is a resource limit.
 */
#ifndef GPULEASE_RLIMITS_H
#define GPULEASE_RLIMITS_H

#include "base.h"

/*
 * Raises the soft limits of descriptors and of file sizes to the hard ones; that of file sizes is
 * rounded down to a multiple of 512, so that a record is appended whole or not at all.  Ignores
 * SIGXFSZ.  Stops ignoring SIGCHLD: a process that ignores it cannot learn how nvidia-smi ended.
 * Saves the dispositions of SIGHUP and SIGPIPE for rlimits_restore().  A second call does nothing.
 */
void rlimits_raise(void);

/*
 * Ignores SIGHUP from now on, for a process that outlives the login; rlimits_restore() restores it.
 * Call this after rlimits_raise().
 */
void rlimits_ignore_hangup(void);

/*
 * Ignores SIGPIPE from now on: a supervisor must not die when the reader of its messages has ended.
 * Its write fails, and it continues.  Call this after rlimits_raise().
 */
void rlimits_ignore_broken_pipe(void);

/*
 * Resets the signals of a terminal to their defaults, also for the command.  A job with a terminal
 * of its own needs this if gpulease was started with these signals ignored, as by nohup(1).
 */
void rlimits_obey_terminal(void);

/* Restores what rlimits_raise() has changed, SIGHUP and SIGPIPE included. */
void rlimits_restore(void);

/*
 * Sets the tag of @token (process_lease.h) on this process; its children and programs inherit it.
 */
void rlimits_tag(const char *token);

/* Sets the tag on process @pid; its later children inherit it.  Does nothing if not permitted. */
void rlimits_tag_process(uint32_t pid, const char *token);

/* Removes the tag from this process: it is no part of the lease any more. */
void rlimits_untag(void);

#endif
