#include <errno.h>

#include "array.h"
#include "queue_parts.h"

/* Inside: nothing to return yet, go on. */
enum { GO_ON = 100 };

/* With so many at the latest those that are over are looked for. */
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

/* --- the tickets that have a priority ---------------------------------------------- */

/* The index of the first that does not come before @place. */
static size_t find(const struct queue *queue, struct queue_place place)
{
	size_t low = 0, high = queue->ranked_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (queue_comes_before(queue->ranked[middle], place))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_ranked(const struct queue *queue, struct queue_place place)
{
	size_t at = find(queue, place);

	return at < queue->ranked_count && !queue_comes_before(place, queue->ranked[at]);
}

static void drop(struct queue *queue, size_t at)
{
	struct queue_place *all = queue->ranked;

	queue->ranked_count--;
	memmove(all + at, all + at + 1, (queue->ranked_count - at) * sizeof(*all));
}

void queue_forget(struct queue *queue, uint64_t number)
{
	for (size_t i = 0; i < queue->ranked_count; i++)
		if (queue->ranked[i].number == number) {
			drop(queue, i);
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

/* Whether ticket @number may still wait; @row is filled in where it can be read. */
static bool may_wait(struct queue *queue, uint64_t number, struct queue_row *row)
{
	int kind = ticket_read(&queue->file, number, &row->ticket);

	if (kind == TICKET_RECORD)
		queue_judge_row(queue, number, row);
	return kind < 0 || kind == TICKET_BROKEN ||
	       (kind == TICKET_RECORD && row->is_waiting);
}

/* Those that have started while nobody needed to look so far are not kept for ever. */
static void prune(struct queue *queue)
{
	struct queue_row row;
	size_t kept = 0;

	for (size_t i = 0; i < queue->ranked_count; i++)
		if (may_wait(queue, queue->ranked[i].number, &row))
			queue->ranked[kept++] = queue->ranked[i];
	queue->ranked_count = kept;
}

/* Room for one more; twice as much where pruning won too little to be worth it soon again. */
static int make_room(struct queue *queue)
{
	size_t room = queue->ranked_room;
	struct queue_place *all;

	if (queue->ranked_count < room)
		return 0;
	if (room >= PRUNE_FROM)
		prune(queue);
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
	r = make_room(queue);
	if (r < 0)
		return r;
	at = find(queue, place);
	memmove(queue->ranked + at + 1, queue->ranked + at,
		(queue->ranked_count - at) * sizeof(place));
	queue->ranked[at] = place;
	queue->ranked_count++;
	return 0;
}

/* --- going through ----------------------------------------------------------------- */

void queue_order_begin(struct queue_cursor *cursor, struct queue_place until)
{
	*cursor = (struct queue_cursor){ .next = { .priority = INT64_MAX },
		.until = until };
}

/* The ticket that @place says, which is ranked. */
static int next_ranked(struct queue *queue, struct queue_cursor *cursor,
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
		return GO_ON;
	}
	if (kind == TICKET_RECORD)
		queue_judge_row(queue, place.number, row);
	priority = row->ticket.request.priority;
	if (kind == TICKET_RECORD && row->is_waiting && priority == place.priority)
		return 0;
	queue_forget(queue, place.number);
	if (kind != TICKET_RECORD || !row->is_waiting || priority == 0)
		return GO_ON;
	/* what was glanced at was damaged and is mended */
	place.priority = priority;
	kind = queue_rank(queue, place);
	return kind < 0 ? kind : GO_ON;
}

/* The next of those that stand in the file in their order. */
static int next_in_file(
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
	if (r == QUEUE_END)
		cursor->next.priority = -1, cursor->next.number = 0;
	if (r != 0)
		return r < 0 ? r : GO_ON;
	place = queue_place_of(row);
	if (!row->is_waiting || is_ranked(queue, place)) /* that is another place */
		return GO_ON;
	/* with a priority: dead and forgotten, or mended since; better late than never */
	return queue_comes_before(place, cursor->until) ? 0 : GO_ON;
}

int queue_next_in_order(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row)
{
	int r = GO_ON;

	while (r == GO_ON) {
		size_t at = find(queue, cursor->next);
		bool is_left = at < queue->ranked_count;

		if (cursor->next.priority >= 0 &&
			!(is_left && queue->ranked[at].priority > 0))
			r = next_in_file(queue, cursor, row);
		else if (is_left)
			r = next_ranked(queue, cursor, queue->ranked[at], row);
		else
			r = QUEUE_END;
	}
	return r;
}
