#include "live_jobs.h"

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
			r = each(arg, &(struct live_job){ .id = lease_job(lease),
					      .uid = lease->owner.uid,
					      .name = lease->name });
	}
	while (r == 0 && (r = queue_next(queue, &number, &row)) == 0) {
		const struct ticket *ticket = &row.ticket;

		if (strcmp(ticket->boot, queue->dir->boot) == 0 &&
			owner_judge_job(&ticket->owner, &ticket->runs,
				queue->dir->pidns) != OWNER_DEAD)
			r = each(arg,
				&(struct live_job){ .id = ticket_job(row.number, ticket),
					.uid = ticket->owner.uid,
					.name = ticket->request.name });
	}
	return r == QUEUE_END ? 0 : r;
}
