#include <errno.h>

#include "array.h"
#include "singleton.h"

/* --- jobs with GPUs ---------------------------------------------------------------- */

static uint64_t row_name_key(const struct queue_row *row)
{
	const struct request *request = &row->ticket.request;

	return job_name_key(request->name, request->name_hash);
}

/* Finds a lease of that user and name that is not over and is not of the ticket's own job. */
static const struct lease *find_named_lease(
	const struct snapshot *view, const struct queue_row *row)
{
	const struct ticket *ticket = &row->ticket;
	uint64_t name_key = row_name_key(row);

	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *found = &view->leases[i];
		const struct lease *lease = &found->lease;

		if (found->is_of_this_boot && !found->is_over &&
			lease->owner.uid == ticket->owner.uid &&
			job_name_key(lease->name, lease->name_hash) == name_key &&
			lease_job(lease) != ticket_job(row->number, ticket))
			return lease;
	}
	return NULL;
}

/* --- jobs without ------------------------------------------------------------------ */

struct ticket_reading {
	struct singletons *singletons;
	struct outcome_look *look;
};

/* Returns 1 if the job has a name, no GPUs, and runs or may run later; 0; or -ENOMEM. */
static int ticket_is_candidate(struct outcome_look *look, const struct ticket *ticket)
{
	struct liveness *life;
	int r;

	if (ticket->request.gpus || !ticket->request.name[0] ||
		ticket->state == TICKET_LEFT ||
		strcmp(ticket->boot, look->queue->dir->boot) != 0)
		return 0;
	r = outcome_judge_life(look, &ticket->owner, &ticket->runs, false, &life);
	return r < 0 ? r : !liveness_is_dead(life);
}

static int note_candidate(void *arg, uint64_t number, const struct ticket *ticket)
{
	const struct ticket_reading *reading = arg;
	struct singletons *singletons = reading->singletons;
	struct singleton_ticket *all;
	int r = ticket_is_candidate(reading->look, ticket);

	if (r <= 0)
		return r;
	all = array_grow(
		singletons->all, sizeof(*all), singletons->count, &singletons->room);
	if (!all)
		return -ENOMEM;
	singletons->all = all;
	all[singletons->count++] = (struct singleton_ticket){ .number = number,
		.name_key = job_name_key(ticket->request.name, ticket->request.name_hash),
		.uid = ticket->owner.uid };
	return 0;
}

/* Reads the new tickets.  Returns 0 or a negative errno. */
static int read_new_tickets(struct singletons *singletons, struct outcome_look *look)
{
	struct ticket_reading reading = { .singletons = singletons, .look = look };
	uint64_t end = look->queue->end;
	int r;

	if (singletons->read_to > end) /* the ticket file was replaced by a new one */
		singletons->count = singletons->read_to = 0;
	r = ticket_each(&look->queue->file, singletons->read_to ? singletons->read_to : 1,
		end, note_candidate, &reading);
	if (r < 0 && r != -EFBIG) /* -EFBIG: go on without the tickets at the end */
		return r;
	singletons->read_to = end;
	return 0;
}

/*
 * Reads ticket @known again.  Its job has the name of @row.  Returns 1 with *@ret if it is
 * another job and runs; 0 if it does not run (yet); -ENOENT if it will never run; or another
 * negative errno.
 */
static int judge_candidate(struct outcome_look *look,
	const struct singleton_ticket *known, const struct queue_row *row,
	struct singleton *ret)
{
	uint64_t job = ticket_job(row->number, &row->ticket);
	struct ticket ticket;
	int kind = ticket_read(&look->queue->file, known->number, &ticket), r;

	if (kind < 0 || kind == TICKET_BROKEN) /* its owner is rewriting it */
		return kind < 0 ? kind : 0;
	r = kind == TICKET_RECORD ? ticket_is_candidate(look, &ticket) : 0;
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	if (ticket.state == TICKET_WAITING || ticket_job(known->number, &ticket) == job)
		return 0;
	*ret = (struct singleton){ .job = ticket_job(known->number, &ticket),
		.owner = ticket.owner,
		.runs = ticket.runs };
	return 1;
}

static int find_running_ticket(struct singletons *singletons, struct outcome_look *look,
	const struct queue_row *row, struct singleton *ret)
{
	for (size_t i = 0; i < singletons->count;) {
		const struct singleton_ticket *known = &singletons->all[i];
		int r = 0;

		if (known->uid == row->ticket.owner.uid &&
			known->name_key == row_name_key(row))
			r = judge_candidate(look, known, row, ret);
		if (r == -ENOENT)
			singletons->all[i] = singletons->all[--singletons->count];
		else if (r != 0)
			return r < 0 ? r : SINGLETON_RUNS;
		else
			i++;
	}
	return 0;
}

/* --- both -------------------------------------------------------------------------- */

int singleton_find(struct singletons *singletons, struct outcome_look *look,
	const struct queue_row *row, struct singleton *ret)
{
	const struct lease *lease = find_named_lease(look->view, row);
	int r;

	if (lease) {
		*ret = (struct singleton){ .job = lease_job(lease),
			.owner = lease->owner,
			.runs = lease->runs };
		return SINGLETON_RUNS;
	}
	r = read_new_tickets(singletons, look);
	return r < 0 ? r : find_running_ticket(singletons, look, row, ret);
}

void singletons_release(struct singletons *singletons)
{
	free(singletons->all);
	*singletons = (struct singletons){ .all = NULL };
}
