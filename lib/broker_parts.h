/*
 * Between the parts of the broker: broker.c takes turns, broker_plan.c says what the queue
 * means for this job, broker_wait.c what is worth waking up for.
 */
#ifndef GPULEASE_BROKER_PARTS_H
#define GPULEASE_BROKER_PARTS_H

#include "broker.h"

/*
 * Plans the rows up to our own, or to where no row can start any more, over what
 * queue_begin() and snapshot_judge() found.  Marks the lives whose end concerns us as watched
 * and sets ->hint.  0 or a negative errno.
 */
MUST_CHECK int broker_plan(struct broker *broker, struct verdict *ret);

/*
 * How many tickets of the job's user wait before ticket @before, UINT64_MAX for all; counted
 * no further than ->max_waiting.  Fewer where the queue cannot be read.
 */
unsigned broker_count_waiting(struct broker *broker, uint64_t before);

/* Whether the job could start were every waiting ticket ahead passed over. */
bool broker_could_start(const struct broker *broker);

/*
 * Sets the alarm, ->wake_ms, for what raises no event: GPUs that return silently, owners that
 * cannot be watched.  Starts a probe where one is due.
 */
void broker_set_alarm(struct broker *broker);

#endif
