#include <errno.h>
#include <unistd.h>

#include "array.h"
#include "bell.h"
#include "clock.h"
#include "live_fifo.h"
#include "namespaces.h"
#include "preempt.h"

enum {
	/* on top of ->leave_ms: time to notice the request and to give the GPUs back */
	OBEY_MS = 10000,
	LEAVE_MOST_MS = 24 * 3600 * 1000, /* a record may claim any time */
	TIMES_MOST = 7, /* how many times the pause before the next request doubles */
};

bool preempt_allows(const struct snapshot_lease *lease, int64_t priority)
{
	const struct lease *record = &lease->lease;

	/* a dead supervisor cannot obey */
	return record->is_preemptible && record->is_supervised &&
	       lease->is_of_this_boot && !lease->is_dead && !lease->is_orphaned &&
	       record->priority < priority;
}

int64_t preempt_until_ms(int64_t at_ms, const struct lease *lease)
{
	int64_t leave_ms = min_i64(max_i64(lease->leave_ms, 0), LEAVE_MOST_MS);

	return at_ms + leave_ms + OBEY_MS;
}

/*
 * Whether the job of @request may use one of the lease's GPUs.  The owner of the lease ignores
 * other requests, even if the end of the lease would help with a limit.
 */
static bool can_use_one_of(const struct request *request, const struct lease *lease)
{
	struct gpuset common = gpuset_and(&request->allow, &lease->gpus);

	return request->gpus && !gpuset_is_empty(&common);
}

/* --- requests -------------------------------------------------------------------- */

static struct preempt_asked *find_asked(const struct preempt *preempt, const char *token)
{
	for (size_t i = 0; i < preempt->count; i++)
		if (strcmp(preempt->asked[i].token, token) == 0)
			return &preempt->asked[i];
	return NULL;
}

void preempt_forget_ended(struct preempt *preempt, struct snapshot *view)
{
	size_t kept = 0;

	for (size_t i = 0; i < preempt->count; i++) {
		const struct snapshot_lease *lease =
			snapshot_find_token(view, preempt->asked[i].token);

		if (lease && !lease->is_over)
			preempt->asked[kept++] = preempt->asked[i];
	}
	preempt->count = kept;
}

int64_t preempt_pending_until_ms(const struct preempt *preempt, int64_t now_ms)
{
	int64_t until_ms = 0;

	for (size_t i = 0; i < preempt->count; i++) {
		int64_t one_ms = preempt->asked[i].until_ms;

		if (one_ms > now_ms && (!until_ms || one_ms < until_ms))
			until_ms = one_ms;
	}
	return until_ms;
}

/* Notes that the owner of @lease is asked now, and when it may be asked again. */
static int remember_asked(
	struct preempt *preempt, const struct lease *lease, int64_t now_ms)
{
	struct preempt_asked *asked = find_asked(preempt, lease->owner.token);
	int64_t span_ms = preempt_until_ms(0, lease);

	if (!asked) {
		struct preempt_asked *all = array_grow(
			preempt->asked, sizeof(*all), preempt->count, &preempt->room);

		if (!all)
			return -ENOMEM;
		preempt->asked = all;
		asked = &all[preempt->count++];
		*asked = (struct preempt_asked){ .times = 0 };
		text_copy(asked->token, sizeof(asked->token), lease->owner.token);
	}
	asked->until_ms = now_ms + (span_ms << asked->times);
	if (asked->times < TIMES_MOST)
		asked->times++;
	return 0;
}

int preempt_ask(struct preempt *preempt, struct queue *queue, const struct snapshot *view,
	uint64_t by, int64_t now_ms)
{
	int count = 0;

	for (size_t i = 0; i < view->lease_count; i++) {
		const struct lease *lease = &view->leases[i].lease;
		struct control control = {
			.verb = CONTROL_PREEMPT,
			.uid = namespaces_own_user(),
			.ticket = lease_job(lease),
			.by = by,
			.at_ms = now_ms,
		};
		int r;

		if (view->leases[i].aside != ASIDE_NEEDED)
			continue;
		/*
		 * Remember first: a waiter that forgot its requests would ask in every turn.  A
		 * crash after the append leaves a request of a dead ticket, which has no effect.
		 */
		r = remember_asked(preempt, lease, now_ms);
		text_copy(control.boot, sizeof(control.boot), queue->dir->boot);
		if (r == 0)
			r = ticket_append_control(&queue->file, &control);
		if (r < 0)
			return r;
		/* after the append: the owner reads its requests when the bell rings */
		bell_ring(queue->dir, lease->owner.token);
		count++;
	}
	return count;
}

void preempt_release(struct preempt *preempt)
{
	free(preempt->asked);
	*preempt = (struct preempt){ .count = 0 };
}

/* --- which jobs must end ------------------------------------------------------------- */

size_t preempt_set_aside(struct snapshot *view, const struct request *request)
{
	size_t count = 0;

	for (size_t i = 0; i < view->lease_count; i++) {
		struct snapshot_lease *lease = &view->leases[i];

		if (!preempt_allows(lease, request->priority) ||
			!can_use_one_of(request, &lease->lease))
			continue;
		lease->aside = ASIDE_MAYBE;
		count++;
	}
	return count;
}

void preempt_put_back(struct snapshot *view)
{
	for (size_t i = 0; i < view->lease_count; i++)
		view->leases[i].aside = ASIDE_NOT;
}

/* The first rank in which two leases differ decides: the greater one is spared first. */
enum { RANKS = 4 };
struct ranks {
	int64_t of[RANKS];
};

static struct ranks rank_lease(
	const struct preempt *preempt, const struct snapshot_lease *lease)
{
	bool is_going = lease->sent_back_ms != 0;
	bool has_refused = !is_going && find_asked(preempt, lease->lease.owner.token);

	/* 1: it has not obeyed, so asking again is of little use; -1: it ends anyway */
	return (struct ranks){ {
		has_refused - is_going,
		lease->lease.priority,
		-lease->lease.since_ms,
		-(int64_t)lease->lease.ticket,
	} };
}

static bool comes_before(const struct ranks *a, const struct ranks *b)
{
	for (unsigned i = 0; i < RANKS; i++)
		if (a->of[i] != b->of[i])
			return a->of[i] > b->of[i];
	return false;
}

/* Returns the next lease to try to spare; NULL: all have been tried. */
static struct snapshot_lease *next_to_spare(
	const struct preempt *preempt, struct snapshot *view)
{
	struct snapshot_lease *best = NULL;
	struct ranks best_ranks = { { 0 } };

	for (size_t i = 0; i < view->lease_count; i++) {
		struct ranks ranks = rank_lease(preempt, &view->leases[i]);

		if (view->leases[i].aside != ASIDE_MAYBE ||
			(best && !comes_before(&ranks, &best_ranks)))
			continue;
		best = &view->leases[i];
		best_ranks = ranks;
	}
	return best;
}

int preempt_choose(const struct preempt *preempt, struct snapshot *view,
	int (*can_start)(void *arg), void *arg)
{
	struct snapshot_lease *lease;

	while ((lease = next_to_spare(preempt, view))) {
		int r;

		/* count the lease again: if the ticket can start all the same, it stays spared */
		lease->aside = ASIDE_NOT;
		r = can_start(arg);
		if (r < 0)
			return r;
		if (r == 0)
			lease->aside = ASIDE_NEEDED;
	}
	return 0;
}

/* --- the job that is asked --------------------------------------------------------- */

/* Whether the ticket that asks may do so still; preempt_judge() in preempt.h says when. */
static bool is_valid_request(
	const struct queue_row *row, const struct lease *lease, uint64_t pidns)
{
	const struct request *request = &row->ticket.request;

	return row->is_waiting && request->priority > lease->priority &&
	       can_use_one_of(request, lease) &&
	       owner_judge(&row->ticket.owner, pidns, NULL) != OWNER_DEAD;
}

int preempt_judge(
	struct queue *queue, const struct lease *lease, uint64_t since, uint64_t *ret_by)
{
	if (!lease->is_preemptible || !lease->is_supervised)
		return 0;
	for (size_t i = 0; i < queue->preempt_count; i++) {
		const struct queue_preempt *asks = &queue->preempts[i];
		struct queue_row row;
		int r;

		/* an earlier request was for an earlier attempt, which has ended */
		if (asks->number < since || asks->job != lease_job(lease))
			continue;
		r = queue_find(queue, asks->by, &row);
		if (r < 0)
			return r;
		if (r != 0 || !is_valid_request(&row, lease, queue->dir->pidns))
			continue;
		*ret_by = ticket_job(row.number, &row.ticket);
		return PREEMPT_RIGHTLY;
	}
	return 0;
}
