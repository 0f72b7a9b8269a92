#include <errno.h>

#include "array.h"
#include "namesake.h"

/* --- jobs with GPUs ---------------------------------------------------------------- */

/* A lease of that user and name that is not over, and not that of an earlier attempt. */
static const struct lease *find_lease(
	const struct snapshot *view, const struct queue_row *row)
{
	const struct ticket *ticket = &row->ticket;

	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *found = &view->leases[i];
		const struct lease *lease = &found->lease;

		if (found->is_of_this_boot && !found->is_over &&
			lease->owner.uid == ticket->owner.uid &&
			strcmp(lease->name, ticket->request.name) == 0 &&
			lease_job(lease) != ticket_job(row->number, ticket))
			return lease;
	}
	return NULL;
}

/* --- jobs without ------------------------------------------------------------------ */

struct reading {
	struct namesakes *namesakes;
	struct outcome_look *look;
};

/* 1: its job has a name and no GPUs, and runs, or may yet; 0; or -ENOMEM. */
static int is_candidate(struct outcome_look *look, const struct ticket *ticket)
{
	struct life *life;
	int r;

	if (ticket->request.gpus || !ticket->request.name[0] ||
		ticket->state == TICKET_LEFT ||
		strcmp(ticket->boot, look->queue->dir->boot) != 0)
		return 0;
	r = outcome_judge_life(look, &ticket->owner, &ticket->runs, false, &life);
	return r < 0 ? r : !life_is_over(life);
}

static int note(void *arg, uint64_t number, const struct ticket *ticket)
{
	const struct reading *reading = arg;
	struct namesakes *namesakes = reading->namesakes;
	struct namesake_ticket *all;
	int r = is_candidate(reading->look, ticket);

	if (r <= 0)
		return r;
	all = array_grow(
		namesakes->all, sizeof(*all), namesakes->count, &namesakes->room);
	if (!all)
		return -ENOMEM;
	namesakes->all = all;
	all[namesakes->count] =
		(struct namesake_ticket){ .number = number, .uid = ticket->owner.uid };
	text_copy(all[namesakes->count++].name, NAME_SIZE_MAX, ticket->request.name);
	return 0;
}

/* Reads the tickets that are new.  0 or a negative errno. */
static int read_new(struct namesakes *namesakes, struct outcome_look *look)
{
	struct reading reading = { .namesakes = namesakes, .look = look };
	uint64_t end = look->queue->end;
	int r;

	if (namesakes->read_to > end) /* of a file that was lost */
		namesakes->count = namesakes->read_to = 0;
	r = ticket_each(&look->queue->file, namesakes->read_to ? namesakes->read_to : 1,
		end, note, &reading);
	if (r < 0 && r != -EFBIG) /* who has so many goes without what is behind them */
		return r;
	namesakes->read_to = end;
	return 0;
}

/*
 * Looks again at ticket @known, whose job has the name of @row.  1: it runs, and is another
 * job: *@ret; 0: it does not, or not yet; -ENOENT: it never will; or another negative errno.
 */
static int judge(struct outcome_look *look, const struct namesake_ticket *known,
	const struct queue_row *row, struct namesake *ret)
{
	uint64_t job = ticket_job(row->number, &row->ticket);
	struct ticket ticket;
	int kind = ticket_read(&look->queue->file, known->number, &ticket), r;

	if (kind < 0 || kind == TICKET_BROKEN) /* just being rewritten */
		return kind < 0 ? kind : 0;
	r = kind == TICKET_RECORD ? is_candidate(look, &ticket) : 0;
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	if (ticket.state == TICKET_WAITING || ticket_job(known->number, &ticket) == job)
		return 0;
	*ret = (struct namesake){ .job = ticket_job(known->number, &ticket),
		.owner = ticket.owner,
		.runs = ticket.runs };
	return 1;
}

static int find_ticket(struct namesakes *namesakes, struct outcome_look *look,
	const struct queue_row *row, struct namesake *ret)
{
	for (size_t i = 0; i < namesakes->count;) {
		const struct namesake_ticket *known = &namesakes->all[i];
		int r = 0;

		if (known->uid == row->ticket.owner.uid &&
			strcmp(known->name, row->ticket.request.name) == 0)
			r = judge(look, known, row, ret);
		if (r == -ENOENT)
			namesakes->all[i] = namesakes->all[--namesakes->count];
		else if (r != 0)
			return r < 0 ? r : NAMESAKE_RUNS;
		else
			i++;
	}
	return 0;
}

/* --- both -------------------------------------------------------------------------- */

int namesake_find(struct namesakes *namesakes, struct outcome_look *look,
	const struct queue_row *row, struct namesake *ret)
{
	const struct lease *lease = find_lease(look->view, row);
	int r;

	if (lease) {
		*ret = (struct namesake){ .job = lease_job(lease),
			.owner = lease->owner,
			.runs = lease->runs };
		return NAMESAKE_RUNS;
	}
	r = read_new(namesakes, look);
	return r < 0 ? r : find_ticket(namesakes, look, row, ret);
}

void namesakes_release(struct namesakes *namesakes)
{
	free(namesakes->all);
	*namesakes = (struct namesakes){ .all = NULL };
}
