/*
 * The line in the history for a job that --cancel has ended, as far as the job's own processes do
 * not write it.
 */
#ifndef GPULEASE_CANCEL_RECORD_H
#define GPULEASE_CANCEL_RECORD_H

#include "queue.h"
#include "snapshot.h"
#include "terminate.h"

struct cancelled {
	struct queue *queue;
	struct snapshot *view;
	uint64_t job;
	/* the job's latest ticket, as read before: it may be swept once its owner is dead */
	uint64_t number;
	const struct ticket *ticket;
	const struct termination *termination; /* ->begun_ms 0: no signal was sent */
	bool is_killed; /* a supervisor's command got KILL at the end of the grace */
};

/*
 * Records, once the job is over, that this user has cancelled it, and its exit status if that is
 * known.  Does nothing if the job has recorded its end itself.
 *
 * A crash before this call leaves a job without GPUs without a line in the history.  The end of a
 * lease is still recorded by the process that replaces the lease, with fewer facts.
 */
void cancel_record(const struct cancelled *cancelled);

#endif
