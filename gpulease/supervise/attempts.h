/*
 * The attempts of a supervised job, one after the other, each with a ticket and a lease of its own;
 * and what the history, the report and an observer say of each.
 *
 * Between two attempts the job first takes its next ticket, then records the end of the last
 * attempt, then gives its lease back.  So other processes find the job in the queue or with a
 * lease at every moment.  A crash in between leaves a ticket and a lease with a dead owner; the
 * process that takes the GPUs then records the end.
 */
#ifndef GPULEASE_ATTEMPTS_H
#define GPULEASE_ATTEMPTS_H

#include "launch.h"
#include "queueing.h"

struct attempts {
	const struct queueing *queueing;
	const struct request *request; /* of the first attempt */
	struct launch *launch;         /* the caller fills in what all attempts share */
	bool keeps_output;             /* stdout and stderr are the log already */
};

/*
 * Before the job joins the queue: checks, for --oom-retries, that the output goes to a file that
 * can be read again.  Returns 0, or an exit status after it has printed the reason.
 */
MUST_CHECK int attempts_check(const struct settings *settings);

/*
 * Runs the job to its end; its first ticket has been granted.  Returns the exit status; does not
 * return if the command died of a signal, because this process then dies of it as well.
 *
 * Each attempt reads the input file of -i from its beginning.  An input that was inherited from the
 * caller is shared by all attempts.
 */
int attempts_run(const struct attempts *attempts);

#endif
