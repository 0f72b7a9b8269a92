/*
 * Opens the state that all jobs share, the queue and the leases, for verbs about jobs such as
 * --cancel and --wait-for.
 *
 * It stays open until the program ends.  Nothing is locked, and a crash leaves no trace.
 */
#ifndef GPULEASE_SHARED_STATE_H
#define GPULEASE_SHARED_STATE_H

#include "context.h"
#include "queue.h"
#include "snapshot.h"

/*
 * Raises the limit of descriptors, opens the context, the queue and the leases, and reads them
 * once.  With @is_reader the caller only reads: an existing queue need not be writable.  Returns
 * 0, or an exit status after a message.
 */
MUST_CHECK int shared_state_open(struct settings *settings, bool is_reader,
	struct context *context, struct queue *queue, struct snapshot *view);

/*
 * Prints that the state cannot be used because of @r, a negative errno or QUEUE_REPLACED.  Returns
 * the exit status.
 */
MUST_CHECK int shared_state_report(const struct context *context, int r);

/*
 * Notes on stderr, once, that this process could not write a line of the history.  The caller calls
 * it after it has taken or ended a lease, and before it executes the command.
 */
void shared_state_note_history_error(void);

#endif
