#include <time.h>

#include "broker_parts.h"
#include "clock.h"

enum {
	PROBE_AGAIN_MS = 1000, /* then 2, 4 … */
	PROBE_AGAIN_MAX_MS = 30000,
	LINGER_AGAIN_MS = 10000,
	DAMAGE_MS = 15000,      /* between two looks for damage */
	UNWATCHABLE_MS = 1000,  /* the longest time between two looks at such an owner */
	STAND_BACK_NS = 250000, /* for each ticket between the first and our own */
	STAND_BACK_MOST = 64,
};

static bool has_beside_leases(const struct snapshot_gpu *gpu)
{
	return gpu->foreign_mib || gpu->settling_mib;
}

/*
 * Whether we wait for the GPU, and no event may tell when it is ours: its state has none; or we
 * want a part of it, and somebody has or had memory on it who is nobody's, or was left behind
 * beside those who share it.
 */
static bool is_silent(const struct broker *broker, unsigned slot)
{
	const struct snapshot_gpu *gpu = &broker->view.gpus[slot];
	const struct request *request = &broker->ticket.request;
	enum verdict_kind kind = broker->verdict.kind;
	struct need need = request_need(request);

	/* it is the end of some lease that is waited for, wherever that is */
	if (kind == VERDICT_HELD || kind == VERDICT_LIMIT)
		return gpu->exists && gpu->lingers;
	return gpu->exists && gpuset_has(&request->allow, slot) &&
	       (gpu_state_is_silent(gpu->state) ||
		       (!need_is_whole(&need) &&
			       (has_beside_leases(gpu) ||
				       (gpu->is_shared && gpu->lingers))));
}

/* --- the alarm --------------------------------------------------------------------- */

/*
 * When the shared probe is to be asked again for GPUs whose return is no event.  That somebody
 * lingers and does nothing only probes in close succession can tell.
 */
static int64_t next_probe_ms(
	const struct broker *broker, bool has_lingering, bool has_others)
{
	int64_t wait_ms = PROBE_AGAIN_MAX_MS;

	if (has_lingering)
		wait_ms = min_i64(LINGER_AGAIN_MS, broker->view.usage.linger_ms);
	if (!broker->view.has_probe)
		return broker->now_ms;
	if (has_others && broker->probe_backoff < 5)
		wait_ms = min_i64(wait_ms, PROBE_AGAIN_MS << broker->probe_backoff);
	return broker->view.probe.finished_ms + wait_ms;
}

/* A lease file in doubt: no probe clears it up, and who may is watched; now and then a look. */
static int64_t next_account_ms(const struct broker *broker)
{
	int64_t age_ms = broker->now_ms - broker->view.account_open_ms;

	return broker->now_ms +
	       min_i64(PROBE_AGAIN_MAX_MS, max_i64(PROBE_AGAIN_MS, age_ms));
}

/* Arms timers, or starts a probe, for GPUs we could use that no event gives back. */
static void consider_silent(struct broker *broker)
{
	const struct snapshot *view = &broker->view;
	bool has_lingering = false, has_others = false;
	int64_t at_ms;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];

		if (!is_silent(broker, slot))
			continue;
		if (gpu->state == GPU_LOCKED) {
			broker->wake_ms = min_i64(broker->wake_ms, gpu->locked_until_ms);
			continue;
		}
		if (snapshot_withholds(view, gpu)) {
			broker->wake_ms =
				min_i64(broker->wake_ms, next_account_ms(broker));
			continue;
		}
		has_lingering = has_lingering || gpu->lingers;
		has_others = has_others || !gpu->lingers || has_beside_leases(gpu);
	}
	if (!has_lingering && !has_others) {
		broker->probe_backoff = 0;
		return;
	}
	if (view->probe.started_ms != broker->judged_ms) {
		/* a result that we have not judged yet, and it changed nothing */
		broker->probe_backoff += broker->judged_ms != 0;
		broker->judged_ms = view->probe.started_ms;
	}
	at_ms = next_probe_ms(broker, has_lingering, has_others);
	if (broker->prober.others_see)
		at_ms = min_i64(at_ms, view->probe.finished_ms + PROBE_AGAIN_MS);
	if (at_ms <= broker->now_ms)
		prober_want(&broker->prober, broker->now_ms);
	else
		broker->wake_ms = min_i64(broker->wake_ms, at_ms);
}

/* An owner that can be neither watched nor asked: looked at after 5 ms, 10, 20 … 1 s. */
static void consider_unwatchable(struct broker *broker)
{
	const struct lives *lives = &broker->view.lives;

	for (size_t i = 0; i < lives->count; i++) {
		const struct life *life = &lives->all[i];
		int64_t age_ms = broker->now_ms - life->unwatchable_ms;

		if (life->is_watched && life->unwatchable_ms)
			broker->wake_ms = min_i64(broker->wake_ms,
				broker->now_ms +
					min_i64(UNWATCHABLE_MS, max_i64(5, age_ms)));
	}
}

void broker_set_alarm(struct broker *broker)
{
	consider_silent(broker);
	consider_unwatchable(broker);
}

bool broker_wants_links(struct broker *broker)
{
	const struct request *request = &broker->ticket.request;
	struct need need = request_need(request);
	unsigned count = 0;

	for (unsigned slot = 0; slot < broker->view.slots; slot++)
		count += broker->view.plan[slot].exists &&
			 gpuset_has(&request->allow, slot);
	if (request->gpus <= 1 || !need_is_whole(&need) || count <= request->gpus ||
		prober_knows_topology(
			&broker->prober, broker->now_ms, &broker->view.probe))
		return false;
	prober_want_topology(&broker->prober, broker->now_ms);
	return true;
}

/* --- what is watched --------------------------------------------------------------- */

static int watch_lives(struct broker *broker)
{
	const struct lives *lives = &broker->view.lives;
	int r = 0;

	for (size_t i = 0; i < lives->count && r == 0; i++) {
		const struct life *life = &lives->all[i];

		if (life->is_watched)
			r = life_watch(life, &broker->watch);
	}
	return r;
}

/* Foreign processes whose GPUs we could use; @pidfds is closed by the caller. */
static int watch_culprits(
	struct broker *broker, struct gpuset *set, int pidfds[GPUSET_MAX])
{
	const struct snapshot *view = &broker->view;
	int r = 0;

	*set = GPUSET_NONE;
	for (unsigned slot = 0; slot < view->slots && r == 0; slot++) {
		if (!view->gpus[slot].culprit || !is_silent(broker, slot))
			continue;
		pidfds[slot] = pidfd_open_process(view->gpus[slot].culprit);
		if (pidfds[slot] < 0)
			continue;
		gpuset_add(set, slot);
		r = watch_add(&broker->watch, pidfds[slot], POLLIN);
	}
	return r;
}

static int watch_probe(struct broker *broker)
{
	struct pollfd fds[PROBE_POLL_FDS];
	unsigned count = prober_poll_fds(&broker->prober, fds);
	int r = 0;

	for (unsigned i = 0; i < count && r == 0; i++)
		r = watch_add(&broker->watch, fds[i].fd, fds[i].events);
	watch_until(&broker->watch, prober_deadline_ms(&broker->prober));
	return r;
}

/*
 * Whether a file was removed or replaced that the waiter needs to hear of the events that it waits
 * for.
 */
static bool is_damaged(const struct broker *broker)
{
	const char *token = broker->ticket.owner.token;

	return (broker->bell_fd >= 0 &&
		       !beacon_is_named(broker->dir, BEACON_BELL, token)) ||
	       (broker->live_fd >= 0 &&
		       !beacon_is_named(broker->dir, BEACON_LIVE, token)) ||
	       !ticket_file_is_current(broker->dir->fd, &broker->queue.file) ||
	       snapshot_has_new_names(&broker->view);
}

/*
 * The end of a lease wakes all waiters at once, and mostly the first of them takes it.  So the
 * waiters behind it leave it the processors, each for the longer the further behind it is.
 */
static void stand_back(const struct broker *broker)
{
	uint64_t behind = broker->number - broker->hint;
	struct timespec span = { .tv_nsec = STAND_BACK_NS };

	if (behind < STAND_BACK_MOST)
		span.tv_nsec *= (long)behind;
	else
		span.tv_nsec *= STAND_BACK_MOST;
	if (!broker->is_first)
		(void)nanosleep(&span, NULL);
}

/*
 * Waits with a ticket.  First sweeps dead tickets, if there are many of them.  No event tells of
 * damage, so now and then a few system calls look for it.
 */
static int wait_with_ticket(struct broker *broker)
{
	bool sweeps = queue_has_backlog(&broker->queue);
	int r = 0;

	while (sweeps && r == 0) {
		sweeps = queue_sweep_slice(&broker->queue);
		r = watch_look(&broker->watch);
	}
	if (r != 0)
		return r < 0 ? r : 0;
	do {
		r = watch_wait_for(&broker->watch, DAMAGE_MS);
		broker->is_damaged = r == WATCH_NOTHING && is_damaged(broker);
	} while (r == WATCH_NOTHING && !broker->is_damaged);
	if (r == 0)
		stand_back(broker);
	return r < 0 ? r : 0;
}

int broker_wait(struct broker *broker, int64_t until_ms)
{
	struct gpuset watched = GPUSET_NONE;
	int pidfds[GPUSET_MAX];
	int r;

	watch_begin(&broker->watch);
	watch_until(&broker->watch,
		broker->view.lives.has_changed ? broker->now_ms : until_ms);
	r = watch_probe(broker);
	if (r == 0 && broker->number) {
		watch_until(&broker->watch, broker->wake_ms);
		r = watch_add(&broker->watch, broker->bell_fd, POLLIN);
		if (r == 0)
			r = watch_add(&broker->watch, broker->leash_fd, POLLIN);
		if (r == 0)
			r = watch_add(&broker->watch, broker->signal_fd, POLLIN);
		if (r == 0)
			r = watch_lives(broker);
		if (r == 0 && !prober_is_busy(&broker->prober))
			r = watch_culprits(broker, &watched, pidfds);
	}
	if (r == 0)
		r = broker->number ? wait_with_ticket(broker)
				   : watch_wait(&broker->watch);
	statedir_refresh(broker->dir);
	gpuset_for_each (slot, &watched) {
		/* what it used may be free, or soon: the old result is no longer waited out */
		if (pidfd_has_ended(pidfds[slot])) {
			broker->probe_backoff = 0;
			prober_want(&broker->prober, clock_boot_ms());
		}
		close_fd(&pidfds[slot]);
	}
	prober_step(&broker->prober, clock_boot_ms(), &broker->view.probe,
		&broker->view.has_probe);
	return r;
}
