/*
 * The supervisor: gpulease as the parent of the command, where an option asks for it.
 *
 * It stays in the command's process group and session, so that the terminal treats both as
 * one: keyboard signals reach the command without its help and do nothing to it; where the
 * command stops it stops too, so that the shell sees it, and is continued together with it
 * (foreground.h).  TERM, HUP, INT, QUIT, USR1, USR2 and the signals that stop are passed on to
 * the command where they were sent to this process alone; one that was ignored at the start is no
 * order to end.  What the command leaves behind becomes its child (subreaper).
 *
 * It is the owner of the lease and shares the FIFO with the command: killed, it frees nothing
 * that still runs.  Nothing is done but at an event.
 */
#ifndef GPULEASE_SUPERVISE_H
#define GPULEASE_SUPERVISE_H

#include "care.h"
#include "launch.h"
#include "sampler.h"

struct supervision {
	const struct launch *launch; /* what the command gets */
	struct broker *broker;   /* whose lease it is; for what others want of the job */
	struct sampler *sampler; /* NULL: nothing is looked at */
	int64_t waited_ms;       /* in the queue, to be told */
	int64_t limit_ms;        /* 0: none */
	int64_t grace_ms;
	int warn_signal; /* to the command, ->warn_ms before the limit; 0: none */
	int64_t warn_ms;
	bool is_sent_back; /* at its limit the job goes back into the queue */
	int done_status;   /* a command that exits with it is done; -1: none */
};

/* Becomes a subreaper; once, before all the others. */
void supervise_prepare(void);

/*
 * Starts the command and returns when it has ended, by itself or, at the limit, cancelled or
 * preempted, with all that it has started: TERM, after the grace KILL (teardown.h).  Who is
 * preempted and has a ->warn_signal gets that first, and ->warn_ms as before a limit.
 *
 * A command counts as warned once ->warn_signal was sent to it while it lived.  Its handler may
 * save and exit.  So whatever its status is then, also 0, only the attempt has ended: the cause is
 * preemption, or the limit for a job that goes back into the queue at its limit.  Exceptions: the
 * user has told the job to end, or the command exits with ->done_status.  For a job that ends at
 * its limit the cause is the limit if the command dies of ->warn_signal.
 *
 * 0 with *@ret set, or a negative errno: it could not be started (-ECANCELED: the job of a batch
 * was recalled in time, or put off).  Signals are treated as before
 * then; those of the job that came too late to be passed on are gone.
 */
MUST_CHECK int supervise(const struct supervision *supervision, struct attempt_end *ret);

/* Ends what the last command has left behind, in the same way; before it is tried again. */
void supervise_sweep(const struct supervision *supervision);

/*
 * Ends this process as the command has ended: returns the exit status, or does not return where
 * that was a signal, which it dies of, without a core.
 */
int supervise_end_as(const struct attempt_end *end);

#endif
