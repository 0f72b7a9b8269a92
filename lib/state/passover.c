#include <errno.h>

#include "array.h"
#include "bell.h"
#include "clock.h"
#include "passover.h"
#include "queue_order.h"

enum {
	PATIENCE_MS = 1000, /* a waiter waits this long before it rings owners ahead */
	ANSWER_MS = 2000,   /* an owner has this long to answer */
	RECENT_MS = 10000,  /* an owner that took a turn this recently is not rung */
	STUCK_MS = 3000,    /* a ticket that could have started for this long is stuck */
};

static int passover_add(
	struct passover_list *list, uint64_t number, uint64_t turn, bool is_stuck)
{
	struct passover_ticket *all =
		array_grow(list->all, sizeof(*all), list->count, &list->room);

	if (!all)
		return -ENOMEM;
	list->all = all;
	list->all[list->count++] = (struct passover_ticket){ number, turn, is_stuck };
	return 0;
}

bool passover_includes(struct passover *passover, const struct queue_row *row)
{
	struct passover_list *list = &passover->passed;

	for (size_t i = 0; i < list->count; i++) {
		if (list->all[i].number != row->number)
			continue;
		/* a stuck owner that takes turns and still says why stays passed over */
		if (list->all[i].is_stuck && row->ticket.stuck[0])
			list->all[i].turn = row->ticket.turn;
		if (list->all[i].turn == row->ticket.turn)
			return true;
		/* the owner has acted: the ticket counts again */
		list->all[i] = list->all[--list->count];
		return false;
	}
	return false;
}

/*
 * Rings the tickets ahead of @own that took no turn since ->since_ms, or not recently, and notes
 * their turn numbers in ->asked.  An owner that lives answers with a turn.
 */
static int passover_ask(struct passover *passover, struct queue *queue,
	struct queue_place own, int64_t now_ms)
{
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	passover->asked.count = 0;
	queue_order_begin(&cursor, own);
	while ((r = queue_next_in_order(queue, &cursor, &row)) == 0) {
		bool is_recent = row.ticket.turn_ms >= passover->since_ms &&
				 clock_age_ms(now_ms, row.ticket.turn_ms) <= RECENT_MS;

		/* a ticket that is held back by its time is in no other ticket's way */
		if (is_recent || row.ticket.not_before_ms > now_ms ||
			passover_includes(passover, &row))
			continue;
		r = passover_add(&passover->asked, row.number, row.ticket.turn, false);
		if (r < 0)
			return r;
		bell_ring(queue->dir, row.ticket.owner.token);
	}
	return r < 0 ? r : 0;
}

/* Passes over the tickets that were rung and took no turn since.  Returns how many, or -errno. */
static int passover_judge_answers(struct passover *passover, struct queue *queue)
{
	int silent = 0;

	for (size_t i = 0; i < passover->asked.count; i++) {
		const struct passover_ticket *asked = &passover->asked.all[i];
		struct queue_row row;
		int r = queue_find(queue, asked->number, &row);

		if (r < 0)
			return r;
		if (r == QUEUE_END || row.ticket.turn != asked->turn)
			continue;
		r = passover_add(&passover->passed, asked->number, asked->turn, false);
		if (r < 0)
			return r;
		silent++;
	}
	passover->asked.count = 0;
	return silent;
}

int passover_consider(struct passover *passover, struct queue *queue,
	struct queue_place own, bool could_start, int64_t now_ms, int64_t *ret_wake_ms)
{
	int r;

	*ret_wake_ms = INT64_MAX;
	/* it is not only tickets ahead that keep this waiter from starting: the time starts anew */
	if (!could_start) {
		passover->since_ms = passover->asked_ms = passover->next_ms = 0;
		return 0;
	}
	if (!passover->since_ms) {
		passover->since_ms = now_ms;
		passover->next_ms = now_ms + PATIENCE_MS;
	}
	/* the bells were rung: judge the answers when the time is over; or ring when it is time */
	if (passover->asked_ms && now_ms >= passover->asked_ms + ANSWER_MS) {
		passover->asked_ms = 0;
		passover->next_ms = now_ms + RECENT_MS;
		r = passover_judge_answers(passover, queue);
		if (r != 0)
			return r < 0 ? r : PASSOVER_CHANGED;
	} else if (!passover->asked_ms && now_ms >= passover->next_ms) {
		r = passover_ask(passover, queue, own, now_ms);
		if (r < 0)
			return r;
		if (passover->asked.count)
			passover->asked_ms = now_ms;
		else
			passover->next_ms = now_ms + RECENT_MS;
	}
	*ret_wake_ms =
		passover->asked_ms ? passover->asked_ms + ANSWER_MS : passover->next_ms;
	return 0;
}

/* --- tickets that could start but do not --------------------------------------------- */

void passover_plan_begin(struct passover *passover)
{
	for (size_t i = 0; i < passover->start_count; i++)
		passover->starts[i].is_planned = false;
}

static struct passover_start *passover_find_start(
	const struct passover *passover, uint64_t number)
{
	for (size_t i = 0; i < passover->start_count; i++)
		if (passover->starts[i].number == number)
			return &passover->starts[i];
	return NULL;
}

bool passover_plans_start(const struct passover *passover, uint64_t number)
{
	const struct passover_start *start = passover_find_start(passover, number);

	return start && start->is_planned;
}

bool passover_plans_any(const struct passover *passover)
{
	size_t i = 0;

	while (i < passover->start_count && !passover->starts[i].is_planned)
		i++;
	return i < passover->start_count;
}

int passover_plan_start(
	struct passover *passover, const struct queue_row *row, const struct gpuset *gpus)
{
	struct passover_start *start = passover_find_start(passover, row->number);

	if (gpuset_is_empty(gpus))
		return 0; /* its job has no GPUs, so it keeps none from other tickets */
	if (!start) {
		start = array_grow(passover->starts, sizeof(*start),
			passover->start_count, &passover->start_room);
		if (!start)
			return -ENOMEM;
		passover->starts = start;
		start = &passover->starts[passover->start_count++];
		start->since_ms = 0;
	}
	/* the plan starts it on other GPUs than before: the time starts anew */
	if (!start->since_ms || !gpuset_equals(&start->gpus, gpus))
		*start = (struct passover_start){ .number = row->number, .gpus = *gpus };
	start->turn = row->ticket.turn;
	start->is_planned = true;
	return 0;
}

/* Forgets the tickets that the last plan did not start, or all of them. */
static void passover_forget_starts(struct passover *passover, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < passover->start_count && !all; i++)
		if (passover->starts[i].is_planned)
			passover->starts[kept++] = passover->starts[i];
	passover->start_count = kept;
}

/*
 * Whether the ticket is to be passed over now: for STUCK_MS without a break this waiter could have
 * taken its GPUs.  Lowers *@wake_ms to the time of the next call.
 */
static bool start_is_stuck(struct passover_start *start,
	const struct passover_means *means, int64_t now_ms, int64_t *wake_ms)
{
	if (!start->since_ms)
		start->since_ms = now_ms;
	if (!means->can_take(means->arg, &start->gpus))
		start->ready_ms = 0;
	else if (!start->ready_ms)
		start->ready_ms = now_ms;
	if (start->ready_ms && now_ms - start->ready_ms >= STUCK_MS)
		return true;
	/* come back often enough to notice when can_take() is false in between */
	*wake_ms = min_i64(*wake_ms, now_ms + PATIENCE_MS);
	if (start->ready_ms)
		*wake_ms = min_i64(*wake_ms, start->ready_ms + STUCK_MS);
	return false;
}

int passover_consider_starts(struct passover *passover, bool could_start,
	const struct passover_means *means, int64_t now_ms, bool *ret_wants_probe,
	int64_t *ret_wake_ms)
{
	int result = 0;

	*ret_wants_probe = false;
	*ret_wake_ms = INT64_MAX;
	/* a waiter that could not start itself says nothing about other owners */
	passover_forget_starts(passover, !could_start);
	for (size_t i = 0; i < passover->start_count; i++) {
		struct passover_start *start = &passover->starts[i];
		int r;

		if (!start_is_stuck(start, means, now_ms, ret_wake_ms)) {
			*ret_wants_probe |= now_ms - start->since_ms >= PATIENCE_MS;
			continue;
		}
		r = passover_add(&passover->passed, start->number, start->turn, true);
		if (r < 0)
			return r;
		result = PASSOVER_CHANGED;
	}
	return result;
}

void passover_release(struct passover *passover)
{
	free(passover->starts);
	free(passover->asked.all);
	free(passover->passed.all);
	*passover = PASSOVER_NONE;
}
