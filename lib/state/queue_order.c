#include <errno.h>

#include "array.h"
#include "queue_order.h"

/* What a step of queue_next_in_order() also returns: no ticket found yet, take another step. */
enum { ORDER_GO_ON = QUEUE_REPLACED + 1 };

/* From so many remembered tickets on, those that wait no more are pruned before more are added. */
enum { PRUNE_FROM = 1024 };

bool queue_comes_before(struct queue_place a, struct queue_place b)
{
	return a.priority != b.priority ? a.priority > b.priority : a.number < b.number;
}

struct queue_place queue_place_of(const struct queue_row *row)
{
	return (struct queue_place){ .priority = row->ticket.request.priority,
		.number = row->number };
}

/* --- the tickets with a priority ---------------------------------------------------- */

static bool is_place_before(const void *item, const void *place)
{
	return queue_comes_before(
		*(const struct queue_place *)item, *(const struct queue_place *)place);
}

/* Returns the index of the first ranked ticket that does not come before @place. */
static size_t queue_find_rank(const struct queue *queue, struct queue_place place)
{
	return array_lower_bound(queue->ranked, sizeof(*queue->ranked),
		queue->ranked_count, &place, is_place_before);
}

static bool is_ranked(const struct queue *queue, struct queue_place place)
{
	size_t at = queue_find_rank(queue, place);

	return at < queue->ranked_count && !queue_comes_before(place, queue->ranked[at]);
}

static void queue_drop_rank(struct queue *queue, size_t at)
{
	struct queue_place *all = queue->ranked;

	queue->ranked_count--;
	memmove(all + at, all + at + 1, (queue->ranked_count - at) * sizeof(*all));
}

void queue_forget(struct queue *queue, uint64_t number)
{
	for (size_t i = 0; i < queue->ranked_count; i++)
		if (queue->ranked[i].number == number) {
			queue_drop_rank(queue, i);
			return;
		}
}

void queue_unrank_before(struct queue *queue, uint64_t first)
{
	size_t kept = 0;

	for (size_t i = 0; i < queue->ranked_count; i++)
		if (queue->ranked[i].number >= first)
			queue->ranked[kept++] = queue->ranked[i];
	queue->ranked_count = kept;
}

/* Whether ticket @number may still wait.  Sets @row if the ticket can be read. */
static bool may_wait(struct queue *queue, uint64_t number, struct queue_row *row)
{
	int kind = ticket_read(&queue->file, number, &row->ticket);

	if (kind == TICKET_RECORD)
		queue_judge_row(queue, number, row);
	return kind < 0 || kind == TICKET_BROKEN ||
	       (kind == TICKET_RECORD && row->is_waiting);
}

/* Forgets tickets that wait no more.  A walk that stops earlier in the order never finds these. */
static void queue_prune_ranks(struct queue *queue)
{
	struct queue_row row;
	size_t kept = 0;

	for (size_t i = 0; i < queue->ranked_count; i++)
		if (may_wait(queue, queue->ranked[i].number, &row))
			queue->ranked[kept++] = queue->ranked[i];
	queue->ranked_count = kept;
}

/*
 * Makes room for one more ranked ticket.  If pruning leaves at least half of the room filled, the
 * array grows as well; else the next few tickets would prune again.
 */
static int queue_make_room(struct queue *queue)
{
	size_t room = queue->ranked_room;
	struct queue_place *all;

	if (queue->ranked_count < room)
		return 0;
	if (room >= PRUNE_FROM)
		queue_prune_ranks(queue);
	if (queue->ranked_count < room / 2)
		return 0;
	all = array_grow(queue->ranked, sizeof(*all), room, &queue->ranked_room);
	if (!all)
		return -ENOMEM;
	queue->ranked = all;
	return 0;
}

int queue_rank(struct queue *queue, struct queue_place place)
{
	size_t at;
	int r;

	if (is_ranked(queue, place))
		return 0;
	r = queue_make_room(queue);
	if (r < 0)
		return r;
	at = queue_find_rank(queue, place);
	memmove(queue->ranked + at + 1, queue->ranked + at,
		(queue->ranked_count - at) * sizeof(place));
	queue->ranked[at] = place;
	queue->ranked_count++;
	return 0;
}

/* --- the walk ----------------------------------------------------------------------- */

void queue_order_begin(struct queue_cursor *cursor, struct queue_place until)
{
	*cursor = (struct queue_cursor){ .next = { .priority = INT64_MAX },
		.until = until };
}

/* Takes the ranked ticket at @place.  Returns as queue_next_in_order(), or ORDER_GO_ON. */
static int queue_step_ranked(struct queue *queue, struct queue_cursor *cursor,
	struct queue_place place, struct queue_row *row)
{
	int64_t priority;
	int kind;

	cursor->next = place;
	if (!queue_comes_before(place, cursor->until))
		return QUEUE_END;
	cursor->next.number++;
	kind = ticket_read(&queue->file, place.number, &row->ticket);
	if (kind < 0)
		return kind;
	if (kind == TICKET_BROKEN) {
		queue_note_broken(queue, place.number);
		return ORDER_GO_ON;
	}
	if (kind == TICKET_RECORD)
		queue_judge_row(queue, place.number, row);
	priority = row->ticket.request.priority;
	if (kind == TICKET_RECORD && row->is_waiting && priority == place.priority)
		return 0;
	queue_forget(queue, place.number);
	if (kind != TICKET_RECORD || !row->is_waiting || priority == 0)
		return ORDER_GO_ON;
	/* it was damaged when its priority was glanced at, and has been mended: rank it anew */
	place.priority = priority;
	kind = queue_rank(queue, place);
	return kind < 0 ? kind : ORDER_GO_ON;
}

/* Takes the next ticket with priority 0, in the order of the file.  Returns as the step above. */
static int queue_step_in_file(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row)
{
	uint64_t number = cursor->next.priority == 0 ? cursor->next.number : 0;
	uint64_t limit = cursor->until.priority == 0 ? cursor->until.number : UINT64_MAX;
	struct queue_place place;
	int r;

	if (cursor->until.priority > 0 || number >= limit)
		return QUEUE_END;
	if (number < queue->from)
		number = queue->from;
	r = queue_next(queue, &number, row);
	cursor->next = (struct queue_place){ .number = number };
	/* after the file come the tickets with a negative priority */
	if (r == QUEUE_END)
		cursor->next.priority = -1, cursor->next.number = 0;
	if (r != 0)
		return r < 0 ? r : ORDER_GO_ON;
	place = queue_place_of(row);
	/* a ranked ticket has its place elsewhere in the order */
	if (!row->is_waiting || is_ranked(queue, place))
		return ORDER_GO_ON;
	/*
	 * A ticket with a priority that is not ranked: it was forgotten as dead, or could not be
	 * read and was mended.  It comes too late in the order, but is not left out.
	 */
	return queue_comes_before(place, cursor->until) ? 0 : ORDER_GO_ON;
}

int queue_next_in_order(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row)
{
	int r = ORDER_GO_ON;

	while (r == ORDER_GO_ON) {
		size_t at = queue_find_rank(queue, cursor->next);
		bool is_left = at < queue->ranked_count;

		/* above 0 come ranked tickets, at 0 the file, below 0 ranked tickets again */
		if (cursor->next.priority >= 0 &&
			!(is_left && queue->ranked[at].priority > 0))
			r = queue_step_in_file(queue, cursor, row);
		else if (is_left)
			r = queue_step_ranked(queue, cursor, queue->ranked[at], row);
		else
			r = QUEUE_END;
	}
	return r;
}
