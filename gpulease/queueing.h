/*
 * A job's wait in the queue, as its user sees it: the waiting line, giving up, being cancelled.
 */
#ifndef GPULEASE_QUEUEING_H
#define GPULEASE_QUEUEING_H

#include "broker.h"
#include "context.h"
#include "waiting.h"

struct queueing {
	const struct context *context;
	struct broker *broker;
	struct waiting_line *line;
};

/*
 * Takes turns until the ticket is granted: 0.  Else the exit status, after the reason was told
 * and the ticket given up: EXIT_GAVE_UP, 128 + SIGTERM where somebody has cancelled it.  Patience
 * is counted from the moment at which the ticket may start; that of --immediate ends with the
 * first attempt.
 */
MUST_CHECK int queueing_wait(const struct queueing *queueing);

/* The job that this one was to come after has not ended well: tells, and EXIT_GAVE_UP. */
int queueing_lose_hope(struct broker *broker);

#endif
