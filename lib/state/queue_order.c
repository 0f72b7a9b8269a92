#include <errno.h>

#include "array.h"
#include "queue_order.h"

/* What a step of queue_next_in_order() also returns: no ticket found yet, take another step. */
enum { ORDER_GO_ON = QUEUE_REPLACED + 1 };

/* A place has at most this, so that INT64_MAX can mean that there is no such ticket. */
static const int64_t ORDER_MOST_MS = INT64_MAX - 1;

/* From so many remembered tickets on, those that wait no more are pruned before more are added. */
enum { PRUNE_FROM = 1024 };

bool queue_comes_before(struct queue_place a, struct queue_place b)
{
	if (a.priority != b.priority)
		return a.priority > b.priority;
	if (!a.order_ms != !b.order_ms)
		return a.order_ms ? a.order_ms < b.since_ms : a.since_ms <= b.order_ms;
	return a.order_ms != b.order_ms ? a.order_ms < b.order_ms : a.number < b.number;
}

struct queue_place queue_place_of(const struct queue_row *row)
{
	const struct ticket *ticket = &row->ticket;

	return (struct queue_place){ .priority = ticket->request.priority,
		.number = row->number,
		.order_ms = min_i64(max_i64(ticket->order_ms, 0), ORDER_MOST_MS),
		.since_ms = ticket->since_ms };
}

/* --- the tickets with a priority or an order of their own --------------------------- */

/*
 * Whether ranked ticket @a is before @b in ->ranked: by priority; the plain ones first, by number;
 * and then the others, by order and number.
 */
static bool is_ranked_before(struct queue_place a, struct queue_place b)
{
	if (a.priority != b.priority)
		return a.priority > b.priority;
	return a.order_ms != b.order_ms ? a.order_ms < b.order_ms : a.number < b.number;
}

static bool is_place_before(const void *item, const void *place)
{
	return is_ranked_before(
		*(const struct queue_place *)item, *(const struct queue_place *)place);
}

/* Returns the index of the first ranked ticket that is not before @place in ->ranked. */
static size_t queue_find_rank(const struct queue *queue, struct queue_place place)
{
	return array_lower_bound(queue->ranked, sizeof(*queue->ranked),
		queue->ranked_count, &place, is_place_before);
}

static bool is_ranked(const struct queue *queue, struct queue_place place)
{
	size_t at = queue_find_rank(queue, place);

	return at < queue->ranked_count && !is_ranked_before(place, queue->ranked[at]);
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

	place.order_ms = max_i64(place.order_ms, 0);
	if ((!place.priority && !place.order_ms) || is_ranked(queue, place))
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

/* Sets the cursor before all tickets of @priority. */
static void enter_priority(struct queue_cursor *cursor, int64_t priority)
{
	cursor->plain = (struct queue_place){ .priority = priority };
	cursor->ordered = (struct queue_place){ .priority = priority, .order_ms = 1 };
}

void queue_order_begin(struct queue_cursor *cursor, struct queue_place until)
{
	cursor->until = until;
	enter_priority(cursor, INT64_MAX);
}

/*
 * Reads the ranked ticket at @place.  Returns 0 if it waits; ORDER_GO_ON if not, and then *@next is
 * behind it; or a negative errno.
 */
static int read_ranked(struct queue *queue, struct queue_place place,
	struct queue_place *next, struct queue_row *row)
{
	struct queue_place real;
	int kind = ticket_read(&queue->file, place.number, &row->ticket);

	*next = place;
	if (kind < 0)
		return kind;
	if (kind == TICKET_BROKEN)
		queue_note_broken(queue, place.number);
	if (kind == TICKET_RECORD)
		queue_judge_row(queue, place.number, row);
	real = queue_place_of(row);
	if (kind == TICKET_RECORD && row->is_waiting && real.priority == place.priority &&
		real.order_ms == place.order_ms)
		return 0;
	next->number++;
	if (kind == TICKET_BROKEN)
		return ORDER_GO_ON;
	queue_forget(queue, place.number);
	if (kind != TICKET_RECORD || !row->is_waiting)
		return ORDER_GO_ON;
	/* it was damaged when its place was glanced at, and has been mended: rank it anew */
	kind = queue_rank(queue, real);
	return kind < 0 ? kind : ORDER_GO_ON;
}

/* Whether @place is that of the walk's end, or comes after it in ->ranked. */
static bool is_past_end(const struct queue_cursor *cursor, struct queue_place place)
{
	return !is_ranked_before(place, cursor->until);
}

/*
 * Reads the next plain ticket of priority 0 before number @limit, in the order of the file.
 * Returns as find_plain().
 */
static int find_in_file(struct queue *queue, struct queue_cursor *cursor, uint64_t limit,
	struct queue_row *row)
{
	uint64_t number = cursor->plain.number;
	struct queue_place place;
	int r = QUEUE_END;

	if (number < queue->from)
		number = queue->from;
	if (number < limit)
		r = queue_next(queue, &number, row);
	cursor->plain.number = number;
	if (r != 0)
		return r;
	cursor->plain.number = row->number;
	if (row->number >= limit)
		return QUEUE_END;
	place = queue_place_of(row);
	/*
	 * A ranked ticket has its place elsewhere in the order.  If the ticket should be ranked and
	 * is not, it was forgotten as dead, or could not be read and was mended.  It comes too late
	 * in the order, but is not left out.
	 */
	if (row->is_waiting && ((!place.priority && !place.order_ms) ||
				       (!is_ranked(queue, place) &&
					       queue_comes_before(place, cursor->until))))
		return 0;
	cursor->plain.number++;
	return ORDER_GO_ON;
}

/*
 * Reads the next plain ticket of the cursor's priority before the walk's end, and leaves the
 * cursor before it.  Returns 0; QUEUE_END: there is none; ORDER_GO_ON: none found yet; or -errno.
 */
static int find_plain(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row)
{
	const struct queue_place *until = &cursor->until;
	struct queue_place place;
	size_t at;

	if (!cursor->plain.priority)
		return find_in_file(queue, cursor,
			!until->priority && !until->order_ms ? until->number : UINT64_MAX,
			row);
	at = queue_find_rank(queue, cursor->plain);
	if (at == queue->ranked_count)
		return QUEUE_END;
	place = queue->ranked[at];
	if (place.priority != cursor->plain.priority || place.order_ms ||
		is_past_end(cursor, place))
		return QUEUE_END;
	return read_ranked(queue, place, &cursor->plain, row);
}

/*
 * Moves the cursor on to the next lower priority that some ticket has.  Returns ORDER_GO_ON, or
 * QUEUE_END.
 */
static int leave_priority(const struct queue *queue, struct queue_cursor *cursor)
{
	int64_t before = cursor->plain.priority, next = INT64_MIN;
	size_t at;

	if (before == INT64_MIN)
		return QUEUE_END;
	at = queue_find_rank(queue, (struct queue_place){ .priority = before - 1 });
	if (at < queue->ranked_count)
		next = queue->ranked[at].priority;
	/* at 0 come the tickets that are not ranked */
	enter_priority(cursor, before > 0 ? max_i64(next, 0) : next);
	return ORDER_GO_ON;
}

/* Takes one step of the walk.  Returns as queue_next_in_order(), or ORDER_GO_ON. */
static int take_step(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row)
{
	const struct queue_place *until = &cursor->until;
	bool is_last = cursor->plain.priority == until->priority;
	int64_t since_ms = INT64_MAX, order_ms = INT64_MAX;
	struct queue_place place = QUEUE_LAST;
	bool is_end = false;
	size_t at;
	int r;

	if (cursor->plain.priority < until->priority)
		return QUEUE_END;
	r = find_plain(queue, cursor, row);
	if (r == 0)
		since_ms = row->ticket.since_ms;
	else if (r != QUEUE_END)
		return r;
	else if (is_last && !until->order_ms)
		since_ms = until->since_ms; /* the walk's end is the next plain ticket */
	at = queue_find_rank(queue, cursor->ordered);
	if (at < queue->ranked_count)
		place = queue->ranked[at];
	if (place.priority == cursor->plain.priority && place.order_ms)
		order_ms = place.order_ms;
	if (is_last && until->order_ms &&
		(order_ms == INT64_MAX || is_past_end(cursor, place))) {
		order_ms = until->order_ms;
		is_end = true;
	}
	if (order_ms < since_ms) {
		if (is_end)
			return QUEUE_END;
		r = read_ranked(queue, place, &cursor->ordered, row);
		if (r == 0)
			cursor->ordered.number++;
		return r;
	}
	if (r != 0)
		return is_last ? QUEUE_END : leave_priority(queue, cursor);
	cursor->plain.number++;
	return 0;
}

int queue_next_in_order(
	struct queue *queue, struct queue_cursor *cursor, struct queue_row *row)
{
	int r = ORDER_GO_ON;

	while (r == ORDER_GO_ON)
		r = take_step(queue, cursor, row);
	return r;
}
