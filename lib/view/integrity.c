#include <errno.h>

#include "array.h"
#include "integrity.h"
#include "live_fifo.h"
#include "ticket.h"
#include "token_index.h"

/* A live job without a lease that can be read. */
struct unknown_job {
	struct integrity_job job;
	bool has_gpus;    /* by one of its tickets GPUs were granted to it */
	bool has_no_gpus; /* by its tickets it has no GPUs, or none yet */
};

struct integrity_search {
	const struct statedir *dir;
	integrity_has_lease *has_lease;
	const void *leases;
	struct unknown_job *all;
	size_t count, room;
	struct token_index index; /* of their tokens */
};

static struct unknown_job *find_unknown_job(
	struct integrity_search *search, const char *token)
{
	const struct token_items items = { search->all, search->count,
		sizeof(*search->all), offsetof(struct unknown_job, job.owner.token) };
	size_t at = token_index_find(&search->index, &items, token);

	return at == SIZE_MAX ? NULL : &search->all[at];
}

static struct unknown_job *add_unknown_job(
	struct integrity_search *search, const char *token)
{
	struct unknown_job *all =
		array_grow(search->all, sizeof(*all), search->count, &search->room);

	if (!all)
		return NULL;
	search->all = all;
	all[search->count] = (struct unknown_job){ .has_gpus = false };
	text_copy(all[search->count].job.owner.token, TOKEN_SIZE, token);
	return &all[search->count++];
}

/* Called for each FIFO that has a writer, and for other files in the place of one. */
static int note_held(void *arg, const char *token)
{
	struct integrity_search *search = arg;

	if (search->has_lease(search->leases, token))
		return 0;
	return add_unknown_job(search, token) ? 0 : -ENOMEM;
}

/* --- tickets ----------------------------------------------------------------------- */

/* Called for each ticket: decides whether its job is an unknown job with GPUs. */
static int note_ticket(void *arg, uint64_t number, const struct ticket *ticket)
{
	struct integrity_search *search = arg;
	const char *token = ticket->owner.token;
	bool has_gpus = ticket->state != TICKET_WAITING && ticket->state != TICKET_LEFT &&
			ticket->request.gpus;
	struct unknown_job *unknown;

	if (strcmp(ticket->boot, search->dir->boot) != 0)
		return 0;
	unknown = find_unknown_job(search, token);
	if (!unknown) {
		/* its FIFO may have been removed: then only its process shows that it lives */
		if (!has_gpus || search->has_lease(search->leases, token) ||
			owner_judge_job(&ticket->owner, &ticket->runs,
				search->dir->pidns) != OWNER_ALIVE)
			return 0;
		unknown = add_unknown_job(search, token);
		if (!unknown)
			return -ENOMEM;
	}
	unknown->has_gpus = unknown->has_gpus || has_gpus;
	unknown->has_no_gpus = !unknown->has_gpus;
	unknown->job.ticket = number;
	unknown->job.owner = ticket->owner;
	return 0;
}

/* --- the search ---------------------------------------------------------------------- */

static int collect_unknown_jobs(struct integrity_search *search)
{
	struct ticket_file file = TICKET_FILE_NONE;
	int r = live_fifo_each_held(search->dir, note_held, search);

	if (r < 0)
		return r;
	/* if there is no ticket file, the jobs that hold FIFOs have no tickets */
	r = ticket_open_to_read(search->dir->fd, &file);
	if (r == 0)
		r = ticket_each(&file, 1, UINT64_MAX, note_ticket, search);
	ticket_release(&file);
	return r == -ENOMEM || r == -EFBIG ? r : 0;
}

int integrity_find(const struct statedir *dir, integrity_has_lease *has_lease,
	const void *leases, struct integrity_job *ret)
{
	struct integrity_search search = {
		.dir = dir, .has_lease = has_lease, .leases = leases
	};
	const struct unknown_job *found = NULL;
	int r = collect_unknown_jobs(&search);

	/* prefer a job with a ticket: messages can name it better */
	for (size_t i = 0; i < search.count && !(found && found->job.ticket); i++)
		if (!search.all[i].has_no_gpus && (!found || search.all[i].job.ticket))
			found = &search.all[i];
	if (found)
		*ret = found->job;
	else if (r < 0 && r != -ENOMEM)
		*ret = (struct integrity_job){ .ticket = 0 };
	free(search.all);
	token_index_release(&search.index);
	if (r == -ENOMEM)
		return r;
	return found || r < 0 ? INTEGRITY_UNKNOWN_JOB : 0;
}
