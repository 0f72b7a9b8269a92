/*
 * Between the parts of the broker: broker.c takes turns, broker_plan.c says what the queue
 * means for this job, broker_wait.c what is worth waking up for.
 */
#ifndef GPULEASE_BROKER_PARTS_H
#define GPULEASE_BROKER_PARTS_H

#include "broker.h"

/*
 * Plans the rows up to our own, @own, or to where no row can start any more, over what
 * queue_begin() and snapshot_judge() found.  Marks the lives whose end concerns us as watched
 * and sets ->hint and ->held.  0; BROKER_HOPELESS; or a negative errno.
 */
MUST_CHECK int broker_plan(
	struct broker *broker, const struct queue_row *own, struct verdict *ret);

/* Our place in the order. */
struct queue_place broker_place(const struct broker *broker);

/*
 * Whether one more ticket may wait, besides those before ticket @before, UINT64_MAX for all of
 * them.  0, or -EDQUOT with the reason in @why.
 */
MUST_CHECK int broker_check_quota(
	struct broker *broker, uint64_t before, struct why *why);

/*
 * Whether a ticket that waits by its own word is one to reckon with: its owner lives, has no
 * lease yet, and is not passed over.
 */
bool broker_counts(struct broker *broker, const struct queue_row *row);

/* Whether the job could start were every waiting ticket ahead passed over. */
bool broker_could_start(struct broker *broker);

/*
 * Whether the choice of several GPUs has to wait until it is known how they are linked; sees
 * to it that it will be.
 */
bool broker_wants_links(struct broker *broker);

/*
 * Sets the alarm, ->wake_ms, for what raises no event: GPUs that return silently, owners that
 * cannot be watched.  Starts a probe where one is due.
 */
void broker_set_alarm(struct broker *broker);

#endif
