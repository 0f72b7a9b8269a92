#include <errno.h>

#include "array.h"
#include "queue_parts.h"

static int add_cancel(struct queue *queue, const struct control *control)
{
	struct queue_cancel *cancels = array_grow(queue->cancels, sizeof(*cancels),
		queue->cancel_count, &queue->cancel_room);

	if (!cancels)
		return -ENOMEM;
	queue->cancels = cancels;
	queue->cancels[queue->cancel_count++] =
		(struct queue_cancel){ .ticket = control->ticket, .uid = control->uid };
	return 0;
}

/* Where to note what @by wants of @job: over what it said before, or over the oldest. */
static struct queue_preempt *find_preempt(struct queue *queue, uint64_t job, uint64_t by)
{
	struct queue_preempt *all, *oldest = queue->preempts;

	for (size_t i = 0; i < queue->preempt_count; i++) {
		struct queue_preempt *one = &queue->preempts[i];

		if (one->job == job && one->by == by)
			return one;
		if (one->number < oldest->number)
			oldest = one;
	}
	if (queue->preempt_count == QUEUE_PREEMPTS_MAX)
		return oldest;
	all = array_grow(queue->preempts, sizeof(*all), queue->preempt_count,
		&queue->preempt_room);
	if (!all)
		return NULL;
	queue->preempts = all;
	return &all[queue->preempt_count++];
}

static int add_preempt(
	struct queue *queue, uint64_t number, const struct control *control)
{
	struct queue_preempt *preempt = find_preempt(queue, control->ticket, control->by);

	if (!preempt)
		return -ENOMEM;
	*preempt = (struct queue_preempt){ .job = control->ticket,
		.by = control->by,
		.number = number,
		.at_ms = control->at_ms };
	return 0;
}

int queue_note_control(
	struct queue *queue, uint64_t number, const struct control *control)
{
	if (strcmp(control->boot, queue->dir->boot) != 0)
		return 0;
	if (control->verb == CONTROL_CANCEL)
		return add_cancel(queue, control);
	return control->verb == CONTROL_PREEMPT ? add_preempt(queue, number, control) : 0;
}

bool queue_is_cancelled(
	const struct queue *queue, uint64_t number, uint32_t owner_uid, uint32_t *ret_uid)
{
	for (size_t i = 0; i < queue->cancel_count; i++) {
		const struct queue_cancel *cancel = &queue->cancels[i];

		if (cancel->ticket == number &&
			(cancel->uid == 0 || cancel->uid == owner_uid)) {
			*ret_uid = cancel->uid;
			return true;
		}
	}
	return false;
}
