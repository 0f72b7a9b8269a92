#include <errno.h>

#include "array.h"
#include "clock.h"
#include "namespaces.h"
#include "queue_order.h"

enum {
	PAGE_RECORDS = 4096 / RECORD_SIZE,
	BAD_SUM_TRIES = 5,
};

static void queue_init(struct queue *queue, const struct statedir *dir)
{
	queue->dir = dir;
	queue->file = TICKET_FILE_NONE;
	queue->scanned = queue->end = 0;
	queue->demand_count = queue->ranked_count = queue->unread_count = 0;
	queue->preempt_count = 0;
	queue->wish = (struct queue_wish){ .job = 0 };
	queue->chunk_count = 0;
}

int queue_open(struct queue *queue, const struct statedir *dir)
{
	queue_init(queue, dir);
	return ticket_open(dir->fd, &queue->file);
}

int queue_open_to_read(struct queue *queue, const struct statedir *dir)
{
	queue_init(queue, dir);
	return ticket_open_to_read(dir->fd, &queue->file);
}

void queue_release(struct queue *queue)
{
	ticket_release(&queue->file);
	free(queue->demands);
	queue->demands = NULL;
	queue->demand_count = queue->demand_room = 0;
	free(queue->preempts);
	queue->preempts = NULL;
	queue->preempt_count = queue->preempt_room = 0;
	free(queue->ranked);
	queue->ranked = NULL;
	queue->ranked_count = queue->ranked_room = 0;
}

/* --- controls: requests of other processes about tickets ---------------------------- */

static int queue_add_demand(struct queue *queue, const struct control *control)
{
	struct queue_demand *demands;

	for (size_t i = 0; i < queue->demand_count; i++) {
		struct queue_demand *demand = &queue->demands[i];

		if (demand->ticket != control->ticket || demand->uid != control->uid ||
			demand->verb != control->verb)
			continue;
		if (control->by > demand->by)
			demand->by = control->by;
		return 0;
	}
	demands = array_grow(queue->demands, sizeof(*demands), queue->demand_count,
		&queue->demand_room);
	if (!demands)
		return -ENOMEM;
	queue->demands = demands;
	queue->demands[queue->demand_count++] = (struct queue_demand){
		.ticket = control->ticket,
		.by = control->by,
		.uid = control->uid,
		.verb = control->verb,
	};
	return 0;
}

/*
 * Finds where to note the request of ticket @by to preempt @job: in place of its earlier request,
 * in a new item, or, if there are too many, in place of the oldest request.  Returns NULL without
 * memory.
 */
static struct queue_preempt *queue_find_preempt(
	struct queue *queue, uint64_t job, uint64_t by)
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

static int queue_add_preempt(
	struct queue *queue, uint64_t number, const struct control *control)
{
	struct queue_preempt *preempt =
		queue_find_preempt(queue, control->ticket, control->by);

	if (!preempt)
		return -ENOMEM;
	*preempt = (struct queue_preempt){ .job = control->ticket,
		.by = control->by,
		.number = number,
		.at_ms = control->at_ms };
	return 0;
}

static void queue_note_wish(
	struct queue_wish *wish, uint64_t number, const struct control *control)
{
	/* any user can append a control: only root and the job's owner may change its priority */
	if (control->ticket != wish->job || !wish->job || number < wish->number ||
		(control->uid != 0 && control->uid != wish->uid))
		return;
	wish->number = number;
	wish->priority = control->priority;
}

/* Remembers @control, which is record @number.  Returns 0 or -ENOMEM. */
static int queue_note_control(
	struct queue *queue, uint64_t number, const struct control *control)
{
	if (strcmp(control->boot, queue->dir->boot) != 0)
		return 0; /* an earlier boot: its job is dead */
	if (control->verb == CONTROL_CANCEL || control->verb == CONTROL_RELEASE ||
		control->verb == CONTROL_REQUEUE)
		return queue_add_demand(queue, control);
	if (control->verb == CONTROL_PRIORITY)
		queue_note_wish(&queue->wish, number, control);
	return control->verb == CONTROL_PREEMPT
		       ? queue_add_preempt(queue, number, control)
		       : 0;
}

/*
 * Whether a user that may do so asks for what @verb and @by say.  Any user can append a control:
 * only root and the job's owner count.
 */
static bool queue_has_demand(const struct queue *queue, uint32_t verb, uint64_t number,
	uint64_t by, uint32_t owner_uid, uint32_t *ret_uid)
{
	for (size_t i = 0; i < queue->demand_count; i++) {
		const struct queue_demand *demand = &queue->demands[i];

		if (demand->ticket == number && demand->verb == verb &&
			demand->by == by &&
			(demand->uid == 0 || demand->uid == owner_uid)) {
			*ret_uid = demand->uid;
			return true;
		}
	}
	return false;
}

bool queue_is_cancelled(
	const struct queue *queue, uint64_t number, uint32_t owner_uid, uint32_t *ret_uid)
{
	return queue_has_demand(queue, CONTROL_CANCEL, number, 0, owner_uid, ret_uid);
}

bool queue_is_released(const struct queue *queue, uint64_t number, uint32_t owner_uid)
{
	uint32_t uid;

	return queue_has_demand(queue, CONTROL_RELEASE, number, 0, owner_uid, &uid);
}

bool queue_is_requeued(
	const struct queue *queue, uint64_t number, uint64_t by, uint32_t owner_uid)
{
	uint32_t uid;

	return queue_has_demand(queue, CONTROL_REQUEUE, number, by, owner_uid, &uid);
}

/* --- reading ----------------------------------------------------------------------- */

/*
 * Sets *@ret to the raw record @number, which stays valid until the next chunk is read.  Reads a
 * chunk that begins at @number if need be.  Returns 0, -ENODATA if the file ends before @number, or
 * another negative errno.
 */
static int queue_raw_record(struct queue *queue, uint64_t number, const char **ret)
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
			return -ENODATA; /* the file was cut meanwhile */
	}
	*ret = queue->chunk + (number - queue->chunk_at) * RECORD_SIZE;
	return 0;
}

/*
 * Returns the record to look at after the void record @number.  Skips pages that were given back.
 */
static uint64_t queue_skip_void(const struct queue *queue, uint64_t number)
{
	/* a hole begins at a page, so ask the file system only there */
	uint64_t next =
		++number % PAGE_RECORDS ? number : ticket_skip_hole(&queue->file, number);

	return next < queue->end ? next : queue->end;
}

/* Notes a record that does not begin like a ticket.  A broken one is looked at again next turn. */
static int queue_glance_other(struct queue *queue, uint64_t number, const char *raw)
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

/*
 * Notes what a waiter needs from record @number even if its walk never reaches the record: a
 * control, or a priority or an order, which change the order of the queue.
 */
static int queue_glance(struct queue *queue, uint64_t number, const char *raw)
{
	struct queue_place place = { .number = number };

	if (ticket_glance(raw) != TICKET_RECORD)
		return queue_glance_other(queue, number, raw);
	ticket_glance_place(raw, &place.priority, &place.order_ms);
	return queue_rank(queue, place);
}

/*
 * Looks again at records that could not be read.  Their owners may have been rewriting them, or a
 * process has mended them since.
 */
static int queue_glance_unread(struct queue *queue)
{
	uint64_t unread[QUEUE_UNREAD_MAX];
	size_t count = queue->unread_count;
	int r = 0;

	/* queue_glance() appends to the list again what still cannot be read */
	memcpy(unread, queue->unread, sizeof(unread));
	queue->unread_count = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		char raw[RECORD_SIZE];
		size_t got = 0;

		if (unread[i] < queue->from)
			continue;
		r = ticket_read_raw(&queue->file, unread[i], 1, raw, &got);
		if (r == 0 && got)
			r = queue_glance(queue, unread[i], raw);
	}
	return r;
}

/* Glances at the records that were appended since the last turn. */
static int queue_scan(struct queue *queue)
{
	int r = queue_glance_unread(queue);

	while (r == 0 && queue->scanned < queue->end) {
		uint64_t number = queue->scanned;
		const char *raw;

		r = queue_raw_record(queue, number, &raw);
		if (r < 0)
			break;
		if (ticket_glance(raw) == TICKET_VOID) {
			queue->scanned = queue_skip_void(queue, number);
			continue;
		}
		r = queue_glance(queue, number, raw);
		queue->scanned++;
	}
	return r;
}

int queue_begin(struct queue *queue, uint64_t own)
{
	uint64_t end;
	const char *raw;
	int r;

	r = ticket_file_check(queue->dir->fd, &queue->file);
	if (r != 0)
		return r < 0 ? r : QUEUE_REPLACED;
	ticket_read_header(&queue->file, &queue->header);
	r = ticket_end(&queue->file, &end);
	if (r < 0)
		return r;
	/* records are never taken away: a file that has become shorter was replaced or cut */
	if (end < queue->end || (own && own >= end))
		return QUEUE_REPLACED;
	queue->end = end;
	queue->first_broken = 0;
	queue->from = queue->header.hint;
	/* a waiter with a wrong hint (damage) still finds its own ticket */
	if (own && own < queue->from)
		queue->from = own;
	if (queue->scanned < queue->from)
		queue->scanned = queue->from; /* a control stands after its ticket */
	queue->chunk_count = 0; /* records may have been rewritten since the last turn */
	queue_unrank_before(queue, queue->from);
	r = queue_scan(queue);
	if (r < 0)
		return r == -ENODATA ? QUEUE_REPLACED : r;
	if (queue->from >= end)
		return 0;
	/* the scan has left the chunk at the end of the file; the walk begins at ->from */
	r = queue_raw_record(queue, queue->from, &raw);
	return r == -ENODATA ? QUEUE_REPLACED : r;
}

int queue_begin_for_wish(struct queue *queue, uint64_t job, uint32_t uid)
{
	queue->wish = (struct queue_wish){ .job = job, .uid = uid };
	queue->scanned = 0; /* the request may stand among controls that were read */
	return queue_begin(queue, 0);
}

/*
 * Whether one of the records from @number on asks for what @control asks for, in the name of the
 * same user.  Returns QUEUE_ASKED, 0, or a negative errno.
 */
static int queue_find_control(
	struct queue *queue, const struct control *control, uint64_t number)
{
	uint64_t end;
	int r = ticket_end(&queue->file, &end);

	while (r == 0 && (number = ticket_skip_hole(&queue->file, number)) < end) {
		struct control other;
		struct ticket ticket;
		const char *raw;

		r = queue_raw_record(queue, number, &raw);
		for (; r == 0 && number < queue->chunk_at + queue->chunk_count;
			number++) {
			raw = queue->chunk + (number - queue->chunk_at) * RECORD_SIZE;
			if (ticket_glance(raw) == TICKET_CONTROL &&
				ticket_decode(raw, &ticket, &other) == TICKET_CONTROL &&
				other.verb == control->verb &&
				other.ticket == control->ticket &&
				other.by == control->by && other.uid == control->uid &&
				strcmp(other.boot, control->boot) == 0)
				return QUEUE_ASKED;
		}
	}
	return r;
}

int queue_ask(struct queue *queue, const struct control *control, uint64_t latest)
{
	struct control asked = *control;
	int r;

	asked.uid = namespaces_own_user();
	asked.at_ms = clock_boot_ms();
	text_copy(asked.boot, sizeof(asked.boot), queue->dir->boot);
	queue->chunk_count = 0; /* other processes have appended since it was read */
	r = queue_find_control(queue, &asked, latest + 1);
	return r == 0 ? ticket_append_control(&queue->file, &asked) : r;
}

void queue_judge_row(const struct queue *queue, uint64_t number, struct queue_row *row)
{
	row->number = number;
	row->is_cancelled = queue_is_cancelled(queue, ticket_job(number, &row->ticket),
		row->ticket.owner.uid, &row->cancelled_by);
	row->is_waiting = row->ticket.state == TICKET_WAITING && !row->is_cancelled &&
			  strcmp(row->ticket.boot, queue->dir->boot) == 0;
}

/*
 * Decodes record @number into @row.  Returns what it is (enum ticket_kind) or a negative errno.
 * Reads a record with a bad sum again, because its owner may be rewriting it.
 */
static int queue_read_row(struct queue *queue, uint64_t number, struct queue_row *row)
{
	int kind = TICKET_BROKEN;

	for (int i = 0; i < BAD_SUM_TRIES && kind == TICKET_BROKEN; i++) {
		struct control control;
		const char *raw;
		int r;

		if (i > 0)
			queue->chunk_count = 0; /* read it from the file */
		r = queue_raw_record(queue, number, &raw);
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
		int kind, r = queue_raw_record(queue, *number, &raw);

		if (r < 0)
			return r == -ENODATA ? QUEUE_END : r;
		switch (ticket_glance(raw)) {
		case TICKET_VOID:
			*number = queue_skip_void(queue, *number);
			continue;
		case TICKET_CONTROL:
			(*number)++;
			continue;
		default:
			break;
		}
		kind = queue_read_row(queue, *number, row);
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
	/*
	 * Another process may have moved it meanwhile.  Between this reading and the writing it may
	 * do so again, and then the hint moves back: that costs time, nothing else.
	 */
	if (hint > queue->header.hint)
		ticket_read_header(&queue->file, &queue->header);
	if (hint <= queue->header.hint)
		return;
	queue->header.hint = hint;
	(void)!ticket_write_header(&queue->file, &queue->header);
}
