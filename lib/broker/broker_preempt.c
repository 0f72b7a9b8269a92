/*
 * Preemption in a turn: which leases are being sent back already, and whether to ask more jobs to
 * end, see preempt.h.  Declared in broker_parts.h.
 */
#include "broker_parts.h"

/* --- leases that are being sent back -------------------------------------------- */

/* Finds the live lease of job @job if it is preemptible; NULL: there is none (any more). */
static struct snapshot_lease *find_preemptible(struct snapshot *view, uint64_t job)
{
	for (size_t i = 0; i < view->lease_count; i++)
		if (lease_job(&view->leases[i].lease) == job &&
			preempt_allows(&view->leases[i], INT64_MAX))
			return &view->leases[i];
	return NULL;
}

/*
 * Judges one request to end a lease.  1: the lease is marked with the time at which it has to end;
 * 0: the request is void; or a negative errno.
 */
static int mark_lease(struct broker *broker, const struct queue_preempt *asks)
{
	struct snapshot_lease *lease = find_preemptible(&broker->view, asks->job);
	struct queue_row row;
	int64_t until_ms;
	int r;

	/* it was meant for an earlier lease; a time in the future counts as old */
	if (!lease || asks->at_ms < lease->lease.since_ms ||
		asks->at_ms > broker->state.now_ms)
		return 0;
	until_ms = preempt_until_ms(asks->at_ms, &lease->lease);
	if (until_ms <= broker->state.now_ms || lease->sent_back_ms >= until_ms)
		return 0;
	/* the ticket that asks has to wait still, and its priority has to be high enough */
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
		int r = mark_lease(broker, &broker->queue.preempts[i]);

		if (r < 0)
			return r;
		is_any = is_any || r > 0;
	}
	return is_any ? snapshot_find_facts(&broker->view, broker->state.now_ms) : 0;
}

/* --- asking jobs to end --------------------------------------------------------- */

/* Plans as if the leases that are set aside had ended. */
static int plan_without_aside(struct broker *broker, struct verdict *ret)
{
	int r = snapshot_find_facts(&broker->view, broker->state.now_ms);

	return r < 0 ? r : broker_replan(broker, ret);
}

/* For preempt_choose(): whether our ticket could start then. */
static int can_start(void *arg)
{
	struct verdict verdict;
	int r = plan_without_aside(arg, &verdict);

	return r < 0 ? r : verdict.kind == VERDICT_START;
}

/* Returns the GPUs of the *@ret_count leases that have to end for our ticket. */
static struct gpuset gpus_to_leave(const struct snapshot *view, size_t *ret_count)
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
 * Whether the plan keeps the free part of the GPUs for our ticket until the rest is free.  That is
 * so for the first head, and for a ticket that a limit for all users holds back, which no later
 * ticket overtakes.  It is not so for a later head: the first head may take what the preempted jobs
 * leave.
 */
static bool is_kept_for(const struct verdict *verdict)
{
	return (verdict->kind == VERDICT_LEASED && verdict->is_first) ||
	       (verdict->kind == VERDICT_LIMIT && !verdict->behind &&
		       limit_is_for_all(verdict->limit.kind));
}

/*
 * With all preemptible leases set aside: marks as ASIDE_NEEDED the leases that have to end for our
 * ticket.  If the plan keeps nothing for our ticket, one job must hold every GPU needed; otherwise
 * other tickets could take the first GPUs before the rest is free.  Returns 1 with *@ret_verdict,
 * the start in the place of these leases, and *@ret_rest, its GPUs that are free now; 0 if the end
 * of all preemptible leases is not enough; or a negative errno.
 */
static int choose_owners(struct broker *broker, bool *could_start,
	struct verdict *ret_verdict, struct gpuset *ret_rest)
{
	size_t count;
	struct gpuset left;
	int r = plan_without_aside(broker, ret_verdict);

	if (r < 0)
		return r;
	if (ret_verdict->kind != VERDICT_START) {
		*could_start = *could_start || broker_could_start(broker);
		return 0;
	}
	r = preempt_choose(&broker->preempt, &broker->view, can_start, broker);
	if (r == 0)
		r = plan_without_aside(broker, ret_verdict);
	if (r < 0 || ret_verdict->kind != VERDICT_START)
		return r;
	left = gpus_to_leave(&broker->view, &count);
	*ret_rest = gpuset_minus(&ret_verdict->gpus, &left);
	return is_kept_for(&broker->result.verdict) ||
	       (count == 1 && gpuset_is_empty(ret_rest));
}

/* Chooses jobs to end, and asks their owners.  Returns as broker_preempt(). */
static int choose_and_ask(struct broker *broker, bool *could_start)
{
	struct verdict verdict;
	struct gpuset rest;
	int r = choose_owners(broker, could_start, &verdict, &rest);

	if (r <= 0)
		return r;
	if (!broker_is_probe_fresh(broker, &rest)) {
		prober_want(&broker->prober, broker->state.now_ms);
		return BROKER_LOOKS_FIRST;
	}
	return preempt_ask(&broker->preempt, &broker->queue, &broker->view,
		       broker->number, broker->state.now_ms) < 0
		       ? 0 /* for example a full disk: our ticket goes on waiting */
		       : BROKER_ASKED;
}

/* Chooses jobs to end, and writes their ids into ->result.  Returns 0 or a negative errno. */
static int choose_and_name(struct broker *broker, bool *could_start)
{
	struct text ids = TEXT_ON(broker->result.sends_back);
	const struct snapshot *view = &broker->view;
	struct verdict verdict;
	struct gpuset rest;
	int r = choose_owners(broker, could_start, &verdict, &rest);

	if (r <= 0)
		return r;
	broker->result.verdict = verdict;
	for (size_t i = 0; i < view->lease_count; i++)
		if (view->leases[i].aside == ASIDE_NEEDED)
			text_addf(&ids, "%s%llu", ids.used ? "," : "",
				(unsigned long long)lease_job(&view->leases[i].lease));
	return 0;
}

/*
 * Whether the ticket waits for GPUs that other jobs have, so that sending jobs back could help it.
 */
static bool may_send_back(const struct broker *broker)
{
	enum verdict_kind kind = broker->result.verdict.kind;

	/* its own thresholds may refuse the GPUs once they are free, again and again */
	return !broker->input.own_usage && !broker->input.sends_none_back &&
	       (kind == VERDICT_LEASED || kind == VERDICT_BEHIND ||
		       kind == VERDICT_LIMIT);
}

/*
 * Sets aside all leases that our ticket may preempt, and calls @act.  Returns what @act returns, or
 * 0 if there are no such leases.
 */
static int with_aside(struct broker *broker, bool *could_start,
	int (*act)(struct broker *broker, bool *could_start))
{
	struct snapshot *view = &broker->view;
	int r, found;

	if (!preempt_set_aside(view, &broker->ticket.request))
		return 0;
	r = act(broker, could_start);
	/* the facts are those of the present again, for the steps of the turn that follow */
	preempt_put_back(view);
	found = snapshot_find_facts(view, broker->state.now_ms);
	return found < 0 ? found : r;
}

int broker_preempt(struct broker *broker, bool *could_start)
{
	int64_t pending_ms;

	preempt_forget_ended(&broker->preempt, &broker->view);
	if (!may_send_back(broker))
		return 0;
	/* jobs that were asked before still have time to end */
	pending_ms = preempt_pending_until_ms(&broker->preempt, broker->state.now_ms);
	if (!pending_ms)
		return with_aside(broker, could_start, choose_and_ask);
	broker->state.wake_ms = min_i64(broker->state.wake_ms, pending_ms);
	return 0;
}

int broker_foresee_preemption(struct broker *broker)
{
	bool could_start = false;

	return may_send_back(broker) ? with_aside(broker, &could_start, choose_and_name)
				     : 0;
}
