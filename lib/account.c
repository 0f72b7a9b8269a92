#include <errno.h>

#include "account.h"
#include "array.h"
#include "beacon.h"
#include "ticket.h"
#include "token_index.h"

/* Somebody who lives without a lease that can be read. */
struct unknown {
	struct account_job job;
	bool has_gpus;     /* a ticket says that it was granted some */
	bool is_accounted; /* a ticket says that it has none, or none yet */
};

struct account {
	const struct statedir *dir;
	account_has_lease *has_lease;
	const void *leases;
	struct unknown *all;
	size_t count, room;
	struct token_index index; /* of their tokens */
};

static struct unknown *find(struct account *account, const char *token)
{
	const struct token_items items = { account->all, account->count,
		sizeof(*account->all), offsetof(struct unknown, job.owner.token) };
	size_t at = token_index_find(&account->index, &items, token);

	return at == SIZE_MAX ? NULL : &account->all[at];
}

static struct unknown *add(struct account *account, const char *token)
{
	struct unknown *all =
		array_grow(account->all, sizeof(*all), account->count, &account->room);

	if (!all)
		return NULL;
	account->all = all;
	all[account->count] = (struct unknown){ .has_gpus = false };
	text_copy(all[account->count].job.owner.token, TOKEN_SIZE, token);
	return &all[account->count++];
}

/* A FIFO with a writer, or something in its place. */
static int note_held(void *arg, const char *token)
{
	struct account *account = arg;

	if (account->has_lease(account->leases, token))
		return 0;
	return add(account, token) ? 0 : -ENOMEM;
}

/* --- tickets ----------------------------------------------------------------------- */

static int note_ticket(void *arg, uint64_t number, const struct ticket *ticket)
{
	struct account *account = arg;
	const char *token = ticket->owner.token;
	bool has_gpus = ticket->state != TICKET_WAITING && ticket->state != TICKET_LEFT &&
			ticket->request.gpus;
	struct unknown *unknown;

	if (strcmp(ticket->boot, account->dir->boot) != 0)
		return 0;
	unknown = find(account, token);
	if (!unknown) {
		/* its FIFO may have been removed: then its process alone says that it lives */
		if (!has_gpus || account->has_lease(account->leases, token) ||
			owner_judge_job(&ticket->owner, &ticket->runs,
				account->dir->pidns) != OWNER_ALIVE)
			return 0;
		unknown = add(account, token);
		if (!unknown)
			return -ENOMEM;
	}
	unknown->has_gpus = unknown->has_gpus || has_gpus;
	unknown->is_accounted = !unknown->has_gpus;
	unknown->job.ticket = number;
	unknown->job.owner = ticket->owner;
	return 0;
}

/* --- the account ------------------------------------------------------------------- */

static int take(struct account *account)
{
	struct ticket_file file = TICKET_FILE_NONE;
	int r = beacon_each_held(account->dir, note_held, account);

	if (r < 0)
		return r;
	/* without it nobody who holds a FIFO has a ticket */
	r = ticket_open_to_read(account->dir->fd, &file);
	if (r == 0)
		r = ticket_each(&file, 1, UINT64_MAX, note_ticket, account);
	ticket_release(&file);
	return r == -ENOMEM || r == -EFBIG ? r : 0;
}

int account_find(const struct statedir *dir, account_has_lease *has_lease,
	const void *leases, struct account_job *ret)
{
	struct account account = { .dir = dir, .has_lease = has_lease, .leases = leases };
	const struct unknown *found = NULL;
	int r = take(&account);

	/* one with a ticket can be named better */
	for (size_t i = 0; i < account.count && !(found && found->job.ticket); i++)
		if (!account.all[i].is_accounted && (!found || account.all[i].job.ticket))
			found = &account.all[i];
	if (found)
		*ret = found->job;
	else if (r < 0 && r != -ENOMEM)
		*ret = (struct account_job){ .ticket = 0 };
	free(account.all);
	token_index_release(&account.index);
	if (r == -ENOMEM)
		return r;
	return found || r < 0 ? ACCOUNT_OPEN : 0;
}
