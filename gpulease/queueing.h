/*
 * A job's wait in the queue, as its user sees it: the waiting line, giving up, being cancelled.
 */
#ifndef GPULEASE_QUEUEING_H
#define GPULEASE_QUEUEING_H

#include <signal.h>

#include "broker.h"
#include "context.h"
#include "waiting.h"

/* Signals that would end this process, blocked while it still has to tell how its job ended. */
struct queueing_signals {
	bool are_held;
	sigset_t set, before; /* while they are: these signals, and the mask before */
};

struct queueing {
	struct queueing_signals *signals;
	const struct context *context;
	struct broker *broker;
	struct waiting_line *line;
};

/*
 * Takes turns until the ticket is granted: 0.  Else the exit status, after the reason was told
 * and the ticket given up: EXIT_GAVE_UP, 128 + SIGTERM where somebody has cancelled it.  Patience
 * is counted from the moment at which the ticket may start; that of --immediate ends with the
 * first attempt.
 *
 * A supervised job leaves a line in the history in all these cases, also if a signal ends this
 * process meanwhile.  Signals that were held are let go at the end.
 */
MUST_CHECK int queueing_wait(const struct queueing *queueing);

/* Holds the signals back, and lets them act again.  Both may be repeated. */
void queueing_hold_signals(struct queueing_signals *signals);
void queueing_let_signals(struct queueing_signals *signals);

/* The job that this one was to come after has not ended well: tells, and EXIT_GAVE_UP. */
int queueing_lose_hope(struct broker *broker);

#endif
