/*
 * A job that is looked after: its attempts, one after the other, each with a ticket and a lease
 * of its own, and what comes of them.
 */
#ifndef GPULEASE_ATTEMPTS_H
#define GPULEASE_ATTEMPTS_H

#include "launch.h"
#include "queueing.h"

struct attempts {
	const struct queueing *queueing;
	const struct request *request; /* of the first */
	struct launch *launch;         /* what is the same for all of them is filled in */
	bool keeps_output;             /* stdout and stderr are the log already */
};

/*
 * Before the queue: whether the output goes where it can be read again, for those who want
 * that.  0, or an exit status after the reason was told.
 */
MUST_CHECK int attempts_check(const struct settings *settings);

/*
 * Runs the job, which has been granted, to its end.  The exit status; does not return where the
 * command died of a signal.  Each attempt finds the input that the settings name at its beginning;
 * what it got from who has called us it shares with those before.
 */
int attempts_run(const struct attempts *attempts);

#endif
