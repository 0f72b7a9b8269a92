#include <errno.h>

#include "array.h"
#include "beacon.h"
#include "clock.h"
#include "passover.h"

enum {
	PATIENCE_MS = 1000, /* before anybody is asked */
	ANSWER_MS = 2000,   /* to answer */
	RECENT_MS = 10000,  /* who has taken a turn since needs no question */
};

static int add(struct passover_list *list, uint64_t number, uint64_t turn)
{
	struct passover_ticket *all =
		array_grow(list->all, sizeof(*all), list->count, &list->room);

	if (!all)
		return -ENOMEM;
	list->all = all;
	list->all[list->count++] =
		(struct passover_ticket){ .number = number, .turn = turn };
	return 0;
}

bool passover_includes(struct passover *passover, const struct queue_row *row)
{
	struct passover_list *list = &passover->passed;

	for (size_t i = 0; i < list->count; i++) {
		if (list->all[i].number != row->number)
			continue;
		if (list->all[i].turn == row->ticket.turn)
			return true;
		list->all[i] = list->all[--list->count];
		return false;
	}
	return false;
}

/* Rings whoever ahead of @own has not acted since this began, or not lately. */
static int ask(struct passover *passover, struct queue *queue, struct queue_place own,
	int64_t now_ms)
{
	struct queue_cursor cursor;
	struct queue_row row;
	int r;

	passover->asked.count = 0;
	queue_order_begin(&cursor, own);
	while ((r = queue_next_in_order(queue, &cursor, &row)) == 0) {
		bool is_recent = row.ticket.turn_ms >= passover->since_ms &&
				 clock_age_ms(now_ms, row.ticket.turn_ms) <= RECENT_MS;

		if (is_recent || passover_includes(passover, &row))
			continue;
		r = add(&passover->asked, row.number, row.ticket.turn);
		if (r < 0)
			return r;
		beacon_ring(queue->dir, row.ticket.owner.token);
	}
	return r < 0 ? r : 0;
}

/* Passes over whoever was asked and has not answered.  Returns how many, or -errno. */
static int judge(struct passover *passover, struct queue *queue)
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
		r = add(&passover->passed, asked->number, asked->turn);
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
	if (!could_start) {
		passover->since_ms = passover->asked_ms = passover->next_ms = 0;
		return 0;
	}
	if (!passover->since_ms) {
		passover->since_ms = now_ms;
		passover->next_ms = now_ms + PATIENCE_MS;
	}
	if (passover->asked_ms && now_ms >= passover->asked_ms + ANSWER_MS) {
		passover->asked_ms = 0;
		passover->next_ms = now_ms + RECENT_MS;
		r = judge(passover, queue);
		if (r != 0)
			return r < 0 ? r : PASSOVER_CHANGED;
	} else if (!passover->asked_ms && now_ms >= passover->next_ms) {
		r = ask(passover, queue, own, now_ms);
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

void passover_release(struct passover *passover)
{
	free(passover->asked.all);
	free(passover->passed.all);
	*passover = PASSOVER_NONE;
}
