#include "broker_parts.h"

/* --- who is being sent back -------------------------------------------------------- */

/* The live lease of job @job, if it is preemptible; NULL: there is none (any more). */
static struct snapshot_lease *find_lease(struct snapshot *view, uint64_t job)
{
	for (size_t i = 0; i < view->lease_count; i++)
		if (lease_job(&view->leases[i].lease) == job &&
			preempt_allows(&view->leases[i], INT64_MAX))
			return &view->leases[i];
	return NULL;
}

/* 1: notes that the lease is to end; 0: it was asked in vain; or a negative errno. */
static int mark(struct broker *broker, const struct queue_preempt *asks)
{
	struct snapshot_lease *lease = find_lease(&broker->view, asks->job);
	struct queue_row row;
	int64_t until_ms;
	int r;

	/* one from the future counts as old */
	if (!lease || asks->at_ms < lease->lease.since_ms || asks->at_ms > broker->now_ms)
		return 0;
	until_ms = preempt_until_ms(asks->at_ms, &lease->lease);
	if (until_ms <= broker->now_ms || lease->sent_back_ms >= until_ms)
		return 0;
	r = queue_find(&broker->queue, asks->by, &row);
	if (r != 0)
		return r < 0 ? r : 0;
	if (!row.is_waiting || !preempt_allows(lease, row.ticket.request.priority) ||
		(row.number != broker->number && !broker_counts(broker, &row)))
		return 0;
	lease->sent_back_ms = until_ms;
	return 1;
}

int broker_mark_sent_back(struct broker *broker)
{
	bool is_any = false;

	for (size_t i = 0; i < broker->queue.preempt_count; i++) {
		int r = mark(broker, &broker->queue.preempts[i]);

		if (r < 0)
			return r;
		is_any = is_any || r > 0;
	}
	return is_any ? snapshot_find_facts(&broker->view, broker->now_ms) : 0;
}

/* --- asking for it ----------------------------------------------------------------- */

/* The plan over what is not set aside. */
static int replan(struct broker *broker, struct verdict *ret)
{
	int r = snapshot_find_facts(&broker->view, broker->now_ms);

	return r < 0 ? r : broker_replan(broker, ret);
}

static int can_start(void *arg)
{
	struct verdict verdict;
	int r = replan(arg, &verdict);

	return r < 0 ? r : verdict.kind == VERDICT_START;
}

/* The GPUs that those who have to end would leave; *@ret_count counts these. */
static struct gpuset find_left(const struct snapshot *view, size_t *ret_count)
{
	struct gpuset out = GPUSET_NONE;

	*ret_count = 0;
	for (size_t i = 0; i < view->lease_count; i++) {
		if (view->leases[i].aside != ASIDE_NEEDED)
			continue;
		out = gpuset_or(&out, &view->leases[i].lease.gpus);
		(*ret_count)++;
	}
	return out;
}

/*
 * Whether the free part of its GPUs is kept for the ticket, now or by the time the rest is free.
 * That is so for the first head, and for a ticket held back by a limit for all, which no ticket
 * overtakes.  It is not so for a later head: the first one may take what the preempted jobs leave.
 */
static bool is_kept_for(const struct verdict *verdict)
{
	return (verdict->kind == VERDICT_LEASED && verdict->is_first) ||
	       (verdict->kind == VERDICT_LIMIT && !verdict->behind &&
		       limit_is_for_all(verdict->limit.kind));
}

/* Asks those who have to end; but for whom nothing is kept only where one job has all. */
static int ask(struct broker *broker, const struct verdict *verdict)
{
	size_t count;
	struct gpuset left = find_left(&broker->view, &count);
	struct gpuset rest = gpuset_minus(&verdict->gpus, &left);

	if (!is_kept_for(&broker->verdict) && (count != 1 || !gpuset_is_empty(&rest)))
		return 0;
	if (!broker_is_probe_fresh(broker, &rest)) {
		prober_want(&broker->prober, broker->now_ms);
		return BROKER_LOOKS_FIRST;
	}
	return preempt_ask(&broker->preempt, &broker->queue, &broker->view,
		       broker->number, broker->now_ms) < 0
		       ? 0 /* the disk is full: it waits on */
		       : BROKER_ASKED;
}

static int consider(struct broker *broker, bool *could_start)
{
	struct verdict verdict;
	int r = replan(broker, &verdict);

	if (r < 0)
		return r;
	if (verdict.kind != VERDICT_START) {
		*could_start = *could_start || broker_could_start(broker);
		return 0;
	}
	r = preempt_choose(&broker->preempt, &broker->view, can_start, broker);
	if (r == 0)
		r = replan(broker, &verdict);
	if (r < 0 || verdict.kind != VERDICT_START)
		return r;
	return ask(broker, &verdict);
}

int broker_preempt(struct broker *broker, bool *could_start)
{
	struct snapshot *view = &broker->view;
	enum verdict_kind kind = broker->verdict.kind;
	int64_t pending_ms;
	int r, found;

	preempt_forget_ended(&broker->preempt, view);
	if (kind != VERDICT_LEASED && kind != VERDICT_BEHIND && kind != VERDICT_LIMIT)
		return 0;
	pending_ms = preempt_pending_until_ms(&broker->preempt, broker->now_ms);
	if (pending_ms) {
		broker->wake_ms = min_i64(broker->wake_ms, pending_ms);
		return 0;
	}
	if (!preempt_set_aside(view, &broker->ticket.request))
		return 0;
	r = consider(broker, could_start);
	preempt_put_back(view);
	found = snapshot_find_facts(view, broker->now_ms);
	return found < 0 ? found : r;
}
