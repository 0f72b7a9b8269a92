/*
 * Fair-share: a job that has to wait counts as having come later, by so much for each GPU-hour
 * that its user had in the last days or already waits for.  It takes a new ticket for that, once
 * for each attempt, so every reader sees one order, and a job that starts at once pays nothing,
 * unless it would start before a job that came earlier and counts as having come later.  Declared
 * in broker.h and broker_parts.h.
 *
 * What a user had is in the file of gpu_hours.h; leases that have not ended count up to now.  A
 * waiting ticket counts with its time limit.  The configuration can give all jobs a limit; a job
 * without one counts as an hour.
 *
 * A user might stop a process before its first turn, and let it go on when GPUs come free.  So a
 * ticket that has waited for LATE_MS counts fair-share before it takes any GPU.
 */
#include "bell.h"
#include "broker_parts.h"
#include "clock.h"
#include "gpu_hours.h"
#include "queue_order.h"

enum {
	LATE_MS = 30000, /* longer than a probe takes */
	HOUR_MS = 3600 * 1000,
};

/* What the user's leases have had up to now, as far as it is not in the file yet. */
static uint64_t count_leases(const struct snapshot *view, uint32_t uid, int64_t window_ms)
{
	int64_t now_ms = clock_boot_ms();
	uint64_t gpu_ms = 0;

	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *seen = &view->leases[i];
		const struct lease *lease = &seen->lease;

		if (lease->owner.uid == uid && seen->is_of_this_boot &&
			!lease->is_recorded)
			gpu_ms += gpu_hours_weigh(gpuset_count(&lease->gpus),
				lease_counts_percent(lease),
				min_i64(now_ms - lease->since_ms, window_ms));
	}
	return gpu_ms;
}

/* What the user's waiting tickets ask for, beside ticket @but. */
static uint64_t count_tickets(
	struct queue *queue, struct snapshot *view, uint32_t uid, uint64_t but)
{
	uint64_t number = queue->from, gpu_ms = 0;
	struct queue_row row;

	while (queue_next(queue, &number, &row) == 0) {
		const struct request *request = &row.ticket.request;
		const struct need need = request_need(request);
		struct liveness *life;

		if (!row.is_waiting || row.number == but || row.ticket.owner.uid != uid)
			continue;
		life = liveness_set_judge(
			&view->lives, &row.ticket.owner, false, clock_boot_ms());
		if (life && !liveness_is_dead(life))
			gpu_ms += gpu_hours_weigh(request->gpus,
				quota_percent(1, &need, view->facts.limits.gpu_mib),
				request->limit_ms > 0 ? request->limit_ms : HOUR_MS);
	}
	return gpu_ms;
}

struct broker_share broker_share_of(const struct config_share *share, struct queue *queue,
	struct snapshot *view, uint32_t uid, uint64_t but)
{
	static const int64_t DAY_MS = 24 * HOUR_MS;
	struct gpu_hours had;
	struct broker_share ret;

	int r = gpu_hours_read(
		view->dir, uid, (unsigned)(share->window_ms / DAY_MS), &had);

	ret.had_ms = had.gpu_ms + count_leases(view, uid, share->window_ms);
	ret.waits_ms = count_tickets(queue, view, uid, but);
	/* a user can see to it that the file cannot be opened, as by a low limit of descriptors */
	ret.late_ms = r < 0 ? share->most_ms
			    : config_share_late_ms(share, ret.had_ms + ret.waits_ms);
	return ret;
}

/*
 * Whether a ticket waits that came before ours, and that only fair-share has put behind it: then
 * our place has to be found in the same way.
 */
static bool is_any_put_behind(struct broker *broker)
{
	const struct ticket *own = &broker->ticket;
	struct queue_cursor cursor;
	struct queue_row row;

	queue_order_begin(&cursor, QUEUE_LAST);
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0) {
		const struct ticket *ticket = &row.ticket;

		if (row.number != broker->number && ticket->late_ms &&
			ticket->since_ms <= own->since_ms &&
			ticket->order_ms > own->since_ms &&
			ticket->request.priority >= own->request.priority &&
			broker_counts(broker, &row))
			return true;
	}
	return false;
}

bool broker_competes(struct broker *broker, enum verdict_kind kind)
{
	if (!broker->input.share.rate_ms || broker->state.is_late ||
		!broker->ticket.request.gpus || kind == VERDICT_GPU ||
		kind == VERDICT_HELD)
		return false;
	return kind != VERDICT_START || is_any_put_behind(broker);
}

bool broker_is_share_due(const struct broker *broker)
{
	const struct ticket *ticket = &broker->ticket;

	return broker->input.share.rate_ms && !broker->state.is_late &&
	       ticket->request.gpus &&
	       (broker->state.waits || clock_boot_ms() - ticket->since_ms >= LATE_MS);
}

int broker_take_share(struct broker *broker, struct why *why)
{
	struct ticket *ticket = &broker->ticket;
	struct broker_share counts = broker_share_of(&broker->input.share, &broker->queue,
		&broker->view, ticket->owner.uid, broker->number);
	struct queue_cursor cursor;
	struct queue_row row;
	int r = 0;

	if (counts.late_ms)
		r = broker_renew(broker, ticket->request.priority, counts.late_ms, why);
	if (r < 0)
		return r;
	broker->state.is_late = true;
	if (!counts.late_ms)
		return 0;
	broker->result.share = counts;
	/* waiters that have taken a turn since this job came may wait for it in vain */
	queue_order_begin(&cursor, QUEUE_LAST);
	while (queue_next_in_order(&broker->queue, &cursor, &row) == 0)
		if (row.number != broker->number &&
			row.ticket.turn_ms >= ticket->since_ms)
			bell_ring(broker->dir, row.ticket.owner.token);
	return BROKER_AGAIN;
}
