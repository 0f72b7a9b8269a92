/*
 * The state as those verbs open it that are about jobs: the queue, and the leases beside it.
 *
 * It stays open for the whole run of the program.  Nothing is locked, and a crash leaves nothing
 * behind.
 */
#ifndef GPULEASE_STATE_H
#define GPULEASE_STATE_H

#include "context.h"
#include "queue.h"
#include "snapshot.h"

/*
 * Raises the limits, opens the context, the queue and the leases, and reads them once.  Where
 * @is_reader, who only looks, the queue need not be writable, if it is there.  0, or an exit
 * status after an error was told.
 */
MUST_CHECK int state_open(struct settings *settings, bool is_reader,
	struct context *context, struct queue *queue, struct snapshot *view);

/*
 * Says that the state cannot be used, because of @r: a negative errno, or QUEUE_REPLACED.
 * Returns the exit status for it.
 */
MUST_CHECK int state_refuse(const struct context *context, int r);

/*
 * Says on stderr, once, if this process could not write a line of the history.  To be called after
 * it has taken or ended a lease, and before it becomes the command.
 */
void state_note_trouble(void);

#endif
