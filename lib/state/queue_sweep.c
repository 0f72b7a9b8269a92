#include <errno.h>
#include <time.h>

#include "bell.h"
#include "clock.h"
#include "fdio.h"
#include "queue_sweep.h"

enum {
	PAGE_RECORDS = 4096 / RECORD_SIZE,
	GROUP = QUEUE_CHUNK, /* records that a sweeper takes at once */
	BACKLOG = 8 * GROUP, /* records after the cursor: more than starts leave */
	START_US = 800,      /* how long a start sweeps; it finishes its last group */
	SLICE_US = 5000,     /* how long a waiter sweeps between two turns */
	RECENT_MS = 2000,    /* a control: what it has caused may not be written yet */
};

/* The cursor on a file system without holes: it is after all groups, so none is swept. */
static const uint64_t NEVER = INT64_MAX / RECORD_SIZE;

/* The content of a record, a page or a group: nothing, something needed, only dead tickets. */
enum sweep_found { SWEEP_NOTHING, SWEEP_LIVE, SWEEP_DEAD };

/* --- one record --------------------------------------------------------------------- */

/* Whether ticket @number may live.  One that cannot be read may be just being rewritten. */
static bool number_may_live(struct queue *queue, uint64_t number, struct ticket *ticket)
{
	int kind = ticket_read(&queue->file, number, ticket);

	return kind < 0 || kind == TICKET_BROKEN ||
	       (kind == TICKET_RECORD && ticket_may_live(queue->dir, ticket));
}

/* Whether a process may still look for @control, which is record @number. */
static bool control_counts(
	struct queue *queue, uint64_t number, const struct control *control)
{
	struct ticket ticket = { .latest = 0 }, by;

	if (strcmp(control->boot, queue->dir->boot) != 0)
		return false;
	if (control->verb != CONTROL_PREEMPT &&
		clock_age_ms(clock_boot_ms(), control->at_ms) < RECENT_MS)
		return true;
	if (!number_may_live(queue, control->ticket, &ticket))
		return false;
	if (control->verb == CONTROL_PREEMPT)
		return number_may_live(queue, control->by, &by);
	/* a job that was released, or has another priority, has a later ticket */
	return control->verb == CONTROL_CANCEL || ticket.latest < number;
}

/*
 * Removes the FIFOs of a ticket with an owner that is dead and that no process holds open, and the
 * name of its job, unless the ticket had a lease: the end of that is not recorded yet.
 */
static void remove_fifos(const struct queue *queue, const struct ticket *ticket)
{
	const struct owner *owner = &ticket->owner;
	static const char *const folders[] = { FIFO_LIVE, FIFO_BELL };

	/* most tickets have no FIFO left, and looking for a name is cheaper than removing it */
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (fifo_is_named(queue->dir, folders[i], owner->token))
			fifo_remove(queue->dir, folders[i], owner->token);
	if (ticket->request.name_hash &&
		(ticket->state != TICKET_GRANTED || !ticket->request.gpus))
		job_name_remove(queue->dir, owner->token);
}

/* Judges the record at @raw, record @number; removes the FIFOs of a dead ticket. */
static enum sweep_found sweep_record(
	struct queue *queue, uint64_t number, const char *raw)
{
	struct control control;
	struct ticket ticket, latest;

	switch (ticket_decode(raw, &ticket, &control)) {
	case TICKET_VOID:
		return SWEEP_NOTHING;
	case TICKET_RECORD:
		/* the first ticket of a job leads to the latest; its own FIFO may be gone */
		if (ticket_may_live(queue->dir, &ticket) ||
			(ticket.latest && number_may_live(queue, ticket.latest, &latest)))
			return SWEEP_LIVE;
		remove_fifos(queue, &ticket);
		return SWEEP_DEAD;
	case TICKET_CONTROL:
		return control_counts(queue, number, &control) ? SWEEP_LIVE : SWEEP_DEAD;
	case TICKET_BROKEN: /* its owner may be rewriting it */
	case TICKET_OTHER:  /* the header, or a record of another version */
		break;
	}
	return SWEEP_LIVE;
}

/*
 * Judges all records of the page that begins at @raw with record @first.  LIVE: at least one of
 * them is needed.
 */
static enum sweep_found sweep_page(struct queue *queue, uint64_t first, const char *raw)
{
	enum sweep_found found = SWEEP_NOTHING;

	for (unsigned i = 0; i < PAGE_RECORDS; i++) {
		enum sweep_found one =
			sweep_record(queue, first + i, raw + i * RECORD_SIZE);

		if (one == SWEEP_LIVE || found == SWEEP_NOTHING)
			found = one;
	}
	return found;
}

/* --- one group ---------------------------------------------------------------------- */

static int sweep_punch(struct queue *queue, uint64_t from, uint64_t to)
{
	return fdio_punch(
		queue->file.fd, (off_t)from * RECORD_SIZE, (off_t)to * RECORD_SIZE);
}

/*
 * Sweeps the group from @first on, and gives adjacent pages back together.  Returns SWEEP_DEAD if
 * it gave back at least one page, SWEEP_LIVE if none, or a negative errno.
 */
static int sweep_group(struct queue *queue, uint64_t first)
{
	uint64_t from = first, at = first;
	int found = SWEEP_LIVE, r;
	size_t count = 0;

	r = ticket_read_raw(&queue->file, first, GROUP, queue->chunk, &count);
	for (; r == 0 && at + PAGE_RECORDS <= first + count; at += PAGE_RECORDS) {
		const char *raw = queue->chunk + (at - first) * RECORD_SIZE;

		if (sweep_page(queue, at, raw) == SWEEP_DEAD && at > 0) {
			found = SWEEP_DEAD;
			continue;
		}
		/* this page stays: give back the dead ones before it */
		r = sweep_punch(queue, from, at);
		from = at + PAGE_RECORDS;
	}
	if (r == 0)
		r = sweep_punch(queue, from, at);
	return r < 0 ? r : found;
}

/* --- the cursor --------------------------------------------------------------------- */

static uint64_t page_of(uint64_t number)
{
	return number / PAGE_RECORDS * PAGE_RECORDS;
}

/*
 * Returns the first group from the cursor on that holds data.  It may reach past the end of the
 * file.
 */
static uint64_t sweep_find_group(const struct queue *queue)
{
	return page_of(ticket_skip_hole(&queue->file, page_of(queue->header.swept)));
}

/*
 * Takes the next whole group before @end for this process.  The cursor in the header moves first,
 * so other sweepers take other groups.  With @may_begin the cursor goes back to the start of the
 * file for a new lap, if a group was appended since the last lap began: a lap finds the tickets
 * that have died since the lap before.  Returns 1 with *@ret_first set, 0 if there is no group, or
 * a negative errno.
 */
static int sweep_take_group(
	struct queue *queue, uint64_t end, bool may_begin, uint64_t *ret_first)
{
	struct ticket_header *header = &queue->header;
	uint64_t first;
	bool is_whole, is_there;
	int r;

	ticket_read_header(&queue->file, header);
	if (header->swept != NEVER && (header->swept > end || header->lap > end))
		header->swept = header->lap = 0; /* the file was longer */
	is_there = header->swept + GROUP <= end;
	first = is_there ? sweep_find_group(queue) : header->swept;
	is_whole = first + GROUP <= end;
	if (!is_whole && may_begin && end >= GROUP && header->lap + GROUP <= end) {
		header->lap = end;
		first = 0;
		is_whole = true;
	} else if (!is_there) {
		return 0;
	}
	/* the cursor stays where less than a group of data follows it */
	header->swept = is_whole ? first + GROUP : first < end ? first : page_of(end);
	if (header->punched < first && first < end)
		header->punched = first;
	*ret_first = first;
	r = ticket_write_header(&queue->file, header);
	return r < 0 ? r : is_whole;
}

/* Ends the sweep for all processes, because the file system has no holes. */
static void sweep_give_up(struct queue *queue)
{
	ticket_read_header(&queue->file, &queue->header);
	queue->header.swept = queue->header.lap = NEVER;
	(void)!ticket_write_header(&queue->file, &queue->header);
}

/* Sweeps the next group.  Returns SWEEP_NOTHING if no group was left, or on failure. */
static enum sweep_found sweep_next(struct queue *queue, uint64_t end, bool may_begin)
{
	uint64_t first = 0;
	int r = sweep_take_group(queue, end, may_begin, &first);

	if (r > 0)
		r = sweep_group(queue, first);
	if (r == -EOPNOTSUPP)
		sweep_give_up(queue);
	/* the sweep has read into the chunk, and may have given its records back */
	queue->chunk_count = 0;
	return r < 0 ? SWEEP_NOTHING : (enum sweep_found)r;
}

/* --- slices ------------------------------------------------------------------------- */

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static bool sweep_has_backlog(const struct queue *queue, uint64_t end)
{
	return queue->header.swept + BACKLOG <= end;
}

/* Rings the ticket at the hint.  Its owner then finds the backlog and sweeps it. */
static void sweep_call_waiter(struct queue *queue)
{
	struct ticket ticket;

	if (ticket_read(&queue->file, queue->header.hint, &ticket) == TICKET_RECORD &&
		ticket.state == TICKET_WAITING)
		bell_ring(queue->dir, ticket.owner.token);
}

void queue_sweep(struct queue *queue)
{
	int64_t until_us = now_us() + START_US;
	bool has_dead = false;
	enum sweep_found found;
	uint64_t end;

	if (ticket_end(&queue->file, &end) < 0)
		return;
	do {
		found = sweep_next(queue, end, true);
		has_dead = has_dead || found == SWEEP_DEAD;
		/* past the hint only: readers do not read what is before it */
	} while (found != SWEEP_NOTHING && queue->header.swept > queue->header.hint &&
		 now_us() < until_us);
	if (has_dead && sweep_has_backlog(queue, end))
		sweep_call_waiter(queue);
}

bool queue_has_backlog(const struct queue *queue)
{
	return sweep_has_backlog(queue, queue->end);
}

bool queue_sweep_slice(struct queue *queue)
{
	int64_t until_us = now_us() + SLICE_US;
	enum sweep_found found;

	do
		found = sweep_next(queue, queue->end, false);
	while (found != SWEEP_NOTHING && now_us() < until_us);
	return found != SWEEP_NOTHING && queue_has_backlog(queue);
}
