/*
 * Preemption: a job that was started as preemptible goes back into the queue when a ticket of
 * higher priority could start in its place.
 *
 * The waiter asks: it appends a control record and rings the job's bell.  The job's owner is
 * the supervisor, the parent of the command.  It checks that the waiter may ask, ends the command
 * and takes a new ticket.  So a request has no effect if it is forged in another user's name, comes
 * too late, or is from a ticket that does not wait (any more).
 *
 * The waiter sets leases aside in its snapshot and plans as if they had ended.  Then it spares each
 * lease that need not end for its own start.  It asks the owners of the others only if it could
 * start as soon as these leases have ended, whether GPUs or a limit kept it waiting.  It asks again
 * only when the time that the jobs have for ending is over, and each time later.  So an owner that
 * is stopped, or a command that cannot be killed, does not cause a storm of requests.
 *
 * Nothing needs repair: a control is void once its ticket is.
 */
#ifndef GPULEASE_PREEMPT_H
#define GPULEASE_PREEMPT_H

#include "queue.h"
#include "snapshot.h"

/* A lease with an owner that was asked. */
struct preempt_asked {
	char token[TOKEN_SIZE];
	unsigned times;
	int64_t until_ms; /* when it is asked again */
};

/* The requests of a waiter, kept from turn to turn.  Zeroed: nothing. */
struct preempt {
	struct preempt_asked *asked;
	size_t count, room;
};

/*
 * Whether the owner of @lease gives its GPUs to a ticket of @priority, and is alive to do so.
 * Pure.
 */
bool preempt_allows(const struct snapshot_lease *lease, int64_t priority);

/* Forgets requests to leases that have ended. */
void preempt_forget_ended(struct preempt *preempt, struct snapshot *view);

/*
 * Returns when the first of the jobs that were asked should have ended; 0: none has time left.
 * Pure.
 */
int64_t preempt_pending_until_ms(const struct preempt *preempt, int64_t now_ms);

/*
 * Sets aside all leases in @view that @request may preempt and that have a GPU which it may use.
 * Returns how many.
 */
size_t preempt_set_aside(struct snapshot *view, const struct request *request);

/*
 * Spares the leases that need not end, and marks the others ASIDE_NEEDED.  It tries to spare them
 * in this order: first leases that were asked and have not obeyed, then higher priorities, then
 * earlier starts, and last leases that are being sent back anyway.  @can_start(@arg) plans over
 * @view with the leases that are set aside at that time; it returns 1, 0, or a negative errno.
 * Returns 0, or the errno of @can_start.
 */
MUST_CHECK int preempt_choose(const struct preempt *preempt, struct snapshot *view,
	int (*can_start)(void *arg), void *arg);

/* Makes all leases count again. */
void preempt_put_back(struct snapshot *view);

/*
 * Asks the owners of the ASIDE_NEEDED leases on behalf of ticket @by.  Returns how many were asked,
 * or a negative errno.
 */
MUST_CHECK int preempt_ask(struct preempt *preempt, struct queue *queue,
	const struct snapshot *view, uint64_t by, int64_t now_ms);

/* Returns when a lease that was asked at @at_ms should have ended.  Pure. */
int64_t preempt_until_ms(int64_t at_ms, const struct lease *lease);

enum preempt_outcome { PREEMPT_RIGHTLY = 1 };

/*
 * Called by the owner of @lease: looks for a valid request after record @since.  A request is valid
 * if its ticket waits, has a higher priority, may use one of the GPUs, and has a live owner.
 * Returns 0 if there is none; PREEMPT_RIGHTLY, with *@ret_by the id of the waiting job; or a
 * negative errno.
 */
MUST_CHECK int preempt_judge(
	struct queue *queue, const struct lease *lease, uint64_t since, uint64_t *ret_by);

/* Frees what @preempt holds; part of broker_release(). */
void preempt_release(struct preempt *preempt);

#endif
