#include <errno.h>

#include "broker_parts.h"

/* An unreadable record that stays so is no copy half done. */
enum { BROKEN_PATIENCE_MS = 1000 };

static struct plan_row row_of(uint64_t number, const struct request *request)
{
	return (struct plan_row){
		.ticket = number,
		.gpus = request->gpus,
		.limit_ms = request->limit_ms,
		.grace_ms = request->grace_ms,
		.allow = request->allow,
	};
}

/* *@ret is the life of a waiting ticket's owner; NULL: it does not wait (any more). */
static int waiting_life(
	struct broker *broker, const struct queue_row *row, struct life **ret)
{
	struct life *life = NULL;

	*ret = NULL;
	if (!row->is_waiting)
		return 0;
	life = lives_judge(
		&broker->view.lives, &row->ticket.owner, false, broker->now_ms);
	if (!life)
		return -ENOMEM;
	if (!life_is_dead(life))
		*ret = life;
	return 0;
}

/* The hint never passes a record that may be a live ticket, half rewritten. */
static void bound_hint(struct broker *broker)
{
	uint64_t broken = broker->queue.first_broken;

	if (broken != broker->broken_ticket) {
		broker->broken_ticket = broken;
		broker->broken_since_ms = broker->now_ms;
	}
	if (broken && broker->hint > broken &&
		broker->now_ms - broker->broken_since_ms < BROKEN_PATIENCE_MS)
		broker->hint = broken;
}

int broker_plan(struct broker *broker, struct verdict *ret)
{
	struct plan_row own = row_of(broker->number, &broker->ticket.request);
	uint64_t number = broker->queue.from;
	bool is_prefix = true;
	struct queue_row row;
	struct plan plan;
	int r = QUEUE_END;

	plan_begin(&plan, broker->view.plan, broker->now_ms);
	broker->hint = broker->queue.from;
	while (!plan_is_closed(&plan) &&
		(r = queue_next(&broker->queue, &number, &row)) == 0 &&
		row.number < broker->number) {
		struct snapshot_lease *lease;
		struct plan_row theirs;
		struct verdict verdict;
		struct life *life;

		r = waiting_life(broker, &row, &life);
		if (r < 0)
			break;
		is_prefix = is_prefix && !life;
		if (is_prefix)
			broker->hint = number;
		if (!life || passover_includes(&broker->passover, &row))
			continue;
		/* its owner was stopped between its lease and its ticket */
		lease = snapshot_find_token(&broker->view, row.ticket.owner.token);
		if (lease && !lease->is_over)
			continue;
		theirs = row_of(row.number, &row.ticket.request);
		verdict = plan_next(&plan, &theirs);
		life->is_watched =
			verdict.kind == VERDICT_START || plan.first_blocked == row.number;
	}
	if (r < 0)
		return r;
	if (is_prefix)
		broker->hint = broker->number;
	bound_hint(broker);
	*ret = plan_next(&plan, &own);
	return 0;
}

bool broker_could_start(const struct broker *broker)
{
	struct plan_row own = row_of(broker->number, &broker->ticket.request);

	return plan_alone(broker->view.plan, broker->now_ms, &own).kind == VERDICT_START;
}

unsigned broker_position(struct broker *broker)
{
	uint64_t number = broker->queue.from;
	unsigned position = 1;
	struct queue_row row;

	while (queue_next(&broker->queue, &number, &row) == 0 &&
		row.number < broker->number) {
		struct life *life;

		if (waiting_life(broker, &row, &life) < 0)
			return 0;
		position += life != NULL;
	}
	return position;
}

unsigned broker_count_waiting(struct broker *broker, uint64_t before)
{
	const struct owner *self = &broker->ticket.owner;
	uint64_t number, end;
	unsigned count = 0;
	struct queue_row row;

	if (queue_begin(&broker->queue, before == UINT64_MAX ? 0 : before) != 0)
		return 0;
	number = broker->queue.from;
	end = before < broker->queue.end ? before : broker->queue.end;
	/* mostly there is no need to look at them */
	if (end < number || end - number < broker->max_waiting)
		return 0;
	while (count < broker->max_waiting &&
		queue_next(&broker->queue, &number, &row) == 0 && row.number < end) {
		struct life *life;

		if (!row.is_waiting || row.ticket.owner.uid != self->uid)
			continue;
		if (waiting_life(broker, &row, &life) < 0)
			break;
		count += life != NULL;
	}
	return count;
}
