/*
 * What the history says of a job that --cancel has ended, as far as the job's own end does not.
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
	const struct termination *termination; /* as far as it was begun */
	bool is_killed; /* the command of a supervisor was, at the end of the grace */
};

/*
 * Once it is over: that this user has cancelled it, and with which status it has ended, where
 * that is known.  Nothing where the job has told that itself.  A crash before it leaves a job
 * without GPUs untold; a lease is told by who replaces it, who knows less.
 */
void cancel_record(const struct cancelled *cancelled);

#endif
