#include "live_jobs.h"

/* Whether the job of the ticket may wait or run.  One that has left it has a later ticket. */
static bool is_live(const struct statedir *dir, const struct ticket *ticket)
{
	return ticket->state != TICKET_LEFT && strcmp(ticket->boot, dir->boot) == 0 &&
	       ticket_has_process(dir, ticket);
}

/* Calls @each for job @id of @owner, with its whole name if that can be read. */
static int call_for(const struct statedir *dir, uint64_t id, const struct owner *owner,
	const char *name, uint64_t hash, live_job_fn *each, void *arg)
{
	struct live_job job = { .id = id, .uid = owner->uid };
	char whole[NAME_SIZE_MAX];

	text_copy(whole, sizeof(whole), name);
	job.name = whole;
	job.cut_hash = job_name_complete(dir, owner->token, hash, whole) ? 0 : hash;
	return each(arg, &job);
}

/*
 * Jobs with GPUs are found by their leases.  Jobs that wait, or run on 0 GPUs, are found by their
 * tickets.
 */
int live_jobs_each(
	struct queue *queue, const struct snapshot *view, live_job_fn *each, void *arg)
{
	uint64_t number = 1;
	struct queue_row row;
	int r = 0;

	for (size_t i = 0; i < view->lease_count && r == 0; i++) {
		const struct lease *lease = &view->leases[i].lease;

		if (!view->leases[i].is_over)
			r = call_for(view->dir, lease_job(lease), &lease->owner,
				lease->name, lease->name_hash, each, arg);
	}
	while (r == 0 && (r = queue_next(queue, &number, &row)) == 0) {
		const struct ticket *ticket = &row.ticket;

		if (is_live(queue->dir, ticket))
			r = call_for(queue->dir, ticket_job(row.number, ticket),
				&ticket->owner, ticket->request.name,
				ticket->request.name_hash, each, arg);
	}
	return r == QUEUE_END ? 0 : r;
}
