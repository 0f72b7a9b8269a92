/*
 * Preemption: a job that was started as preemptible goes back into the queue when a ticket of
 * higher priority could start in its place.
 *
 * The ticket that waits asks, by a control record that it appends and the bell of the job; the
 * job's owner, who is there as the parent of the command, looks whether who asks may, ends the
 * command and takes a new ticket.  So what is asked for in somebody else's name, too late, or
 * by somebody who does not wait (any more) comes to nothing.
 *
 * Who waits sets leases aside in its snapshot, plans as if they had ended, and spares again
 * those without whose end it could start as well.  Only if it could start at once when the rest
 * has ended, be it a limit that kept it waiting, does it ask; and not again before the time that
 * they have for it is over, and each time later: an owner that is stopped, or a command that
 * cannot be killed, is no storm.
 *
 * Nothing needs repair: a control is void with the ticket that asks.
 */
#ifndef GPULEASE_PREEMPT_H
#define GPULEASE_PREEMPT_H

#include "queue.h"
#include "snapshot.h"

/* A lease whose owner was asked. */
struct preempt_asked {
	char token[TOKEN_SIZE];
	unsigned times;
	int64_t until_ms; /* when it is asked again */
};

/* What a waiter remembers from turn to turn.  Zeroed: nothing. */
struct preempt {
	struct preempt_asked *asked;
	size_t count, room;
};

/*
 * Whether the owner of @lease lets a ticket of @priority have its GPUs, and is there to do so.
 * Pure.
 */
bool preempt_allows(const struct snapshot_lease *lease, int64_t priority);

/* Forgets who was asked and has ended. */
void preempt_forget_ended(struct preempt *preempt, struct snapshot *view);

/*
 * When to look again, while somebody who was asked has time left; 0: nobody has.  Pure.
 */
int64_t preempt_pending_until_ms(const struct preempt *preempt, int64_t now_ms);

/* Sets aside all leases in @view that let @request have a GPU of theirs; returns how many. */
size_t preempt_set_aside(struct snapshot *view, const struct request *request);

/*
 * Spares, of what is set aside, all that need not end: the higher priority and the earlier
 * start first, and last what is being sent back anyway; but before all others what was asked
 * and has not obeyed.  @can_start(@arg) plans over @view as it is set aside: 1, 0, or a negative
 * errno.  0 with those left that are ASIDE_NEEDED, or what @can_start returned.
 */
MUST_CHECK int preempt_choose(const struct preempt *preempt, struct snapshot *view,
	int (*can_start)(void *arg), void *arg);

/* Nothing is set aside any more. */
void preempt_put_back(struct snapshot *view);

/*
 * Asks the owners of the leases that are ASIDE_NEEDED on behalf of ticket @by.  How many were
 * asked, or a negative errno.
 */
MUST_CHECK int preempt_ask(struct preempt *preempt, struct queue *queue,
	const struct snapshot *view, uint64_t by, int64_t now_ms);

/* Until when a lease that was asked at @at_ms is to have ended.  Pure. */
int64_t preempt_until_ms(int64_t at_ms, const struct lease *lease);

/*
 * For the owner of @lease: whether a control of those behind record @since asks for it rightly,
 * by a ticket that waits, may use one of its GPUs, and whose owner lives.  0; PREEMPT_RIGHTLY
 * with *@ret_by the id of the job that waits; or a negative errno.
 */
enum { PREEMPT_RIGHTLY = 1 };
MUST_CHECK int preempt_judge(
	struct queue *queue, const struct lease *lease, uint64_t since, uint64_t *ret_by);

void preempt_release(struct preempt *preempt);

#endif
