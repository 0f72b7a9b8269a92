/*
 * The wait of a job in the queue, as its user sees it: the waiting line, --max-wait and
 * --immediate, a cancel request, signals.  The broker does the work in the state directory
 * (broker.h).
 */
#ifndef GPULEASE_QUEUEING_H
#define GPULEASE_QUEUEING_H

#include <signal.h>

#include "broker.h"
#include "context.h"
#include "job_observer.h"
#include "waiting_line.h"

/* Signals that would end this process, blocked while it still has to record how its job ended. */
struct queueing_signals {
	bool are_held;
	sigset_t set,
		before; /* while they are held: these signals, and the mask before */
};

struct queueing {
	struct queueing_signals *signals;
	const struct context *context;
	struct broker *broker;
	struct waiting_line *line;
	const struct job_observer *observer; /* NULL: none */
};

/*
 * Waits until the ticket is granted, and then returns 0.  Otherwise returns the exit status, after
 * it has printed the reason and given the ticket up: EXIT_GAVE_UP; 128 + SIGTERM if the job was
 * cancelled; 128 + the signal; EXIT_MISUSE.  --max-wait counts from the time at which the ticket
 * may start; --immediate holds for the first attempt only.
 *
 * A supervised job gets a line in the history in all these cases, also if a signal ends this
 * process meanwhile.  The signals are blocked until the line is written, and released before this
 * function returns.
 *
 * A process that is killed while it waits leaves a ticket with a dead owner, which the next
 * processes sweep.
 */
MUST_CHECK int queueing_wait(const struct queueing *queueing);

/* Block the signals, and release them.  Each function may be called twice. */
void queueing_hold_signals(struct queueing_signals *signals);
void queueing_release_signals(struct queueing_signals *signals);

/*
 * Gives the ticket up, because a job that this job depends on did not end well.  Prints the reason
 * and returns EXIT_GAVE_UP.
 */
int queueing_dependency_failed(struct broker *broker);

#endif
