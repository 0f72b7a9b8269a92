#include <errno.h>

#include "queue_parts.h"

enum {
	PAGE_RECORDS = 4096 / RECORD_SIZE,
	BAD_SUM_TRIES = 5,
};

static void init(struct queue *queue, const struct statedir *dir)
{
	queue->dir = dir;
	queue->file = TICKET_FILE_NONE;
	queue->scanned = queue->end = 0;
	queue->cancel_count = queue->ranked_count = queue->unread_count = 0;
	queue->preempt_count = 0;
	queue->chunk_count = 0;
}

int queue_open(struct queue *queue, const struct statedir *dir)
{
	init(queue, dir);
	return ticket_open(dir->fd, &queue->file);
}

int queue_open_to_read(struct queue *queue, const struct statedir *dir)
{
	init(queue, dir);
	return ticket_open_to_read(dir->fd, &queue->file);
}

void queue_release(struct queue *queue)
{
	ticket_release(&queue->file);
	free(queue->cancels);
	queue->cancels = NULL;
	queue->cancel_count = queue->cancel_room = 0;
	free(queue->preempts);
	queue->preempts = NULL;
	queue->preempt_count = queue->preempt_room = 0;
	free(queue->ranked);
	queue->ranked = NULL;
	queue->ranked_count = queue->ranked_room = 0;
}

/* --- reading ----------------------------------------------------------------------- */

/* The raw record @number, from the chunk, which is read anew where it does not hold it. */
static int raw_record(struct queue *queue, uint64_t number, const char **ret)
{
	if (number < queue->chunk_at || number >= queue->chunk_at + queue->chunk_count) {
		int r = ticket_read_raw(&queue->file, number, QUEUE_CHUNK, queue->chunk,
			&queue->chunk_count);

		if (r < 0) {
			queue->chunk_count = 0;
			return r;
		}
		queue->chunk_at = number;
		if (queue->chunk_count == 0)
			return -ENODATA; /* cut while we read */
	}
	*ret = queue->chunk + (number - queue->chunk_at) * RECORD_SIZE;
	return 0;
}

/* The record to look at behind @number, which is void: pages that were given back are passed. */
static uint64_t pass_void(const struct queue *queue, uint64_t number)
{
	uint64_t next =
		++number % PAGE_RECORDS ? number : ticket_skip_hole(&queue->file, number);

	return next < queue->end ? next : queue->end;
}

/* Looks at a record that is no ticket at a glance; what cannot be read waits for a turn. */
static int note_other(struct queue *queue, uint64_t number, const char *raw)
{
	struct control control;
	struct ticket ticket;

	switch (ticket_decode(raw, &ticket, &control)) {
	case TICKET_CONTROL:
		return queue_note_control(queue, number, &control);
	case TICKET_BROKEN:
		if (queue->unread_count < QUEUE_UNREAD_MAX)
			queue->unread[queue->unread_count++] = number;
		break;
	default:
		break;
	}
	return 0;
}

/* Notes what is to be known of record @number before it is reached. */
static int note(struct queue *queue, uint64_t number, const char *raw)
{
	int64_t priority;

	if (ticket_glance(raw) != TICKET_RECORD)
		return note_other(queue, number, raw);
	priority = ticket_glance_priority(raw);
	return priority ? queue_rank(queue, (struct queue_place){ priority, number }) : 0;
}

/* Looks again at what could not be read: it may have been half-copied, or mended since. */
static int note_unread(struct queue *queue)
{
	uint64_t unread[QUEUE_UNREAD_MAX];
	size_t count = queue->unread_count;
	int r = 0;

	memcpy(unread, queue->unread, sizeof(unread));
	queue->unread_count = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		char raw[RECORD_SIZE];
		size_t got = 0;

		if (unread[i] < queue->from)
			continue;
		r = ticket_read_raw(&queue->file, unread[i], 1, raw, &got);
		if (r == 0 && got)
			r = note(queue, unread[i], raw);
	}
	return r;
}

/* Glances at what was appended since the last turn. */
static int scan(struct queue *queue)
{
	int r = note_unread(queue);

	while (r == 0 && queue->scanned < queue->end) {
		uint64_t number = queue->scanned;
		const char *raw;

		r = raw_record(queue, number, &raw);
		if (r < 0)
			break;
		if (ticket_glance(raw) == TICKET_VOID) {
			queue->scanned = pass_void(queue, number);
			continue;
		}
		r = note(queue, number, raw);
		queue->scanned++;
	}
	return r;
}

int queue_begin(struct queue *queue, uint64_t own)
{
	uint64_t end;
	const char *raw;
	int r;

	if (!ticket_file_is_current(queue->dir->fd, &queue->file))
		return QUEUE_REPLACED;
	ticket_read_header(&queue->file, &queue->header);
	r = ticket_end(&queue->file, &end);
	if (r < 0)
		return r;
	if (end < queue->end || (own && own >= end))
		return QUEUE_REPLACED;
	queue->end = end;
	queue->first_broken = 0;
	queue->from = queue->header.hint;
	if (own && own < queue->from)
		queue->from = own;
	if (queue->scanned < queue->from)
		queue->scanned = queue->from; /* a control lies behind its ticket */
	queue->chunk_count = 0;
	queue_unrank_before(queue, queue->from);
	r = scan(queue);
	if (r < 0)
		return r == -ENODATA ? QUEUE_REPLACED : r;
	if (queue->from >= end)
		return 0;
	r = raw_record(queue, queue->from, &raw);
	return r == -ENODATA ? QUEUE_REPLACED : r;
}

void queue_judge_row(const struct queue *queue, uint64_t number, struct queue_row *row)
{
	row->number = number;
	row->is_cancelled = queue_is_cancelled(queue, ticket_job(number, &row->ticket),
		row->ticket.owner.uid, &row->cancelled_by);
	row->is_waiting = row->ticket.state == TICKET_WAITING && !row->is_cancelled &&
			  strcmp(row->ticket.boot, queue->dir->boot) == 0;
}

/* What record @number is; one with a bad sum is read again, it may be half-copied. */
static int read_row(struct queue *queue, uint64_t number, struct queue_row *row)
{
	int kind = TICKET_BROKEN;

	for (int i = 0; i < BAD_SUM_TRIES && kind == TICKET_BROKEN; i++) {
		struct control control;
		const char *raw;
		int r;

		if (i > 0)
			queue->chunk_count = 0;
		r = raw_record(queue, number, &raw);
		if (r < 0)
			return r;
		kind = (int)ticket_decode(raw, &row->ticket, &control);
	}
	return kind;
}

void queue_note_broken(struct queue *queue, uint64_t number)
{
	if (!queue->first_broken || number < queue->first_broken)
		queue->first_broken = number;
}

int queue_next(struct queue *queue, uint64_t *number, struct queue_row *row)
{
	while (*number < queue->end) {
		const char *raw;
		int kind, r = raw_record(queue, *number, &raw);

		if (r < 0)
			return r == -ENODATA ? QUEUE_END : r;
		switch (ticket_glance(raw)) {
		case TICKET_VOID:
			*number = pass_void(queue, *number);
			continue;
		case TICKET_CONTROL:
			(*number)++;
			continue;
		default:
			break;
		}
		kind = read_row(queue, *number, row);
		if (kind < 0)
			return kind;
		(*number)++;
		if (kind == TICKET_RECORD) {
			queue_judge_row(queue, *number - 1, row);
			return 0;
		}
		if (kind == TICKET_BROKEN)
			queue_note_broken(queue, *number - 1);
	}
	return QUEUE_END;
}

int queue_find(struct queue *queue, uint64_t number, struct queue_row *row)
{
	int kind = number > 0 && number < queue->end
			   ? ticket_read(&queue->file, number, &row->ticket)
			   : TICKET_VOID;

	if (kind < 0)
		return kind;
	if (kind != TICKET_RECORD)
		return QUEUE_END;
	queue_judge_row(queue, number, row);
	return 0;
}

void queue_move_hint(struct queue *queue, uint64_t hint)
{
	/* another process may have moved it meanwhile */
	if (hint > queue->header.hint)
		ticket_read_header(&queue->file, &queue->header);
	if (hint <= queue->header.hint)
		return;
	queue->header.hint = hint;
	(void)!ticket_write_header(&queue->file, &queue->header);
}
