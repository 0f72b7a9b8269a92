/*
 * What ends the wait between two turns.  Most changes raise an event: a pidfd, a FIFO or the bell
 * becomes readable.  For changes without an event the alarm, ->state.wake_ms, is set here, or a
 * probe is started.  Declared in broker.h (broker_wait()) and broker_parts.h.
 */
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <time.h>

#include "broker_parts.h"
#include "clock.h"
#include "fifo.h"
#include "queue_sweep.h"

enum {
	PROBE_AGAIN_MS = 1000, /* after a probe that changed nothing; then 2 s, 4 s … */
	PROBE_AGAIN_MAX_MS = 30000,
	LINGER_AGAIN_MS = 10000,
	DAMAGE_MS = 15000,      /* between two looks for damage */
	STAND_BACK_NS = 250000, /* for each ticket between the first and ours */
	STAND_BACK_MOST = 64,   /* the most tickets that count for that */
	/* after an errno; then 200 ms, 400 ms … */
	PAUSE_MS = 100,
	PAUSE_MOST_MS = 30000,
	BLIND_MS = 1000,       /* the longest pause in which nothing is watched */
	CROWD_MS = 1000,       /* between two looks at owners without a descriptor … */
	CROWD_MOST_MS = 30000, /* … more if many wait before us */
	CROWD_EACH = 8,
	CULPRITS_MOST = 8, /* processes without a lease that are watched */
	FDS_LEAST = 4,     /* of the ->fds_most */
	FDS_ALL =
		64, /* with a limit below this, there are fewer for lives and lease files */
};

/* Whether memory on the GPU belongs to no lease, or to leases that have just ended. */
static bool has_memory_beside_leases(const struct snapshot_gpu *gpu)
{
	return gpu->foreign_mib || gpu->settling_mib;
}

/*
 * Whether our ticket waits for the GPU and the GPU may become free without an event.  That is so if
 * its state changes without one.  It is also so if the job needs a part of the GPU and some memory
 * on it becomes free without an event: memory of no lease, of a lease that has just ended, or of a
 * lingering lease on a shared GPU.
 */
static bool is_silent(const struct broker *broker, unsigned slot)
{
	const struct snapshot_gpu *gpu = &broker->view.gpus[slot];
	const struct request *request = &broker->ticket.request;
	enum verdict_kind kind = broker->result.verdict.kind;
	struct need need = request_need(request);

	if (!gpu->exists)
		return false;
	/* then our ticket waits for some lease to end, on whatever GPU: only lingering is silent */
	if (kind == VERDICT_HELD || kind == VERDICT_LIMIT)
		return gpu->lingers;
	if (gpuset_has(&broker->result.refused, slot))
		return true;
	return gpuset_has(&request->allow, slot) &&
	       (gpu_state_is_silent(gpu->state) ||
		       (!need_is_whole(&need) &&
			       (has_memory_beside_leases(gpu) ||
				       (gpu->is_shared && gpu->lingers))));
}

/* --- the alarm ------------------------------------------------------------------ */

/*
 * Returns when the next probe is due for GPUs that become free without an event.  @has_lingering: a
 * lease lingers on one of them; only probes at short intervals show that its GPU stays idle.
 * @has_others: one of them is kept by something else; for these the interval begins at 1 s and
 * doubles, because memory that settles is mostly free soon.
 */
static int64_t next_probe_ms(
	const struct broker *broker, bool has_lingering, bool has_others)
{
	int64_t wait_ms = PROBE_AGAIN_MAX_MS;

	if (has_lingering)
		wait_ms = min_i64(LINGER_AGAIN_MS, broker->view.usage.linger_ms);
	if (!broker->view.has_probe)
		return broker->state.now_ms;
	if (has_others && broker->state.probe_backoff < 5)
		wait_ms = min_i64(wait_ms, PROBE_AGAIN_MS << broker->state.probe_backoff);
	return broker->view.probe.finished_ms + wait_ms;
}

/*
 * Returns when to look again at a GPU that is withheld because its lease file is damaged.  No probe
 * can clear that up.  The end of the job that may have lost its lease raises an event; this look is
 * for a job that cannot be watched.  The interval is the time for which the GPU has been withheld,
 * so it doubles, from 1 s to 30 s.
 */
static int64_t next_integrity_ms(const struct broker *broker)
{
	int64_t age_ms = broker->state.now_ms - broker->view.unknown_since_ms;

	return broker->state.now_ms +
	       min_i64(PROBE_AGAIN_MAX_MS, max_i64(PROBE_AGAIN_MS, age_ms));
}

/* Sets the alarm, or starts a probe, for GPUs that may become free without an event. */
static void set_alarm_for_silent_gpus(struct broker *broker)
{
	const struct snapshot *view = &broker->view;
	const struct verdict *verdict = &broker->result.verdict;
	/* a GPU that the machine lacks may come back, which only nvidia-smi shows */
	bool has_lingering = false, has_others = verdict->kind == VERDICT_GPU &&
						 verdict->there < verdict->wanted;
	int64_t at_ms;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];

		if (!is_silent(broker, slot))
			continue;
		if (gpu->state == GPU_LOCKED) {
			broker->state.wake_ms =
				min_i64(broker->state.wake_ms, gpu->locked_until_ms);
			continue;
		}
		if (snapshot_withholds(view, gpu)) {
			broker->state.wake_ms =
				min_i64(broker->state.wake_ms, next_integrity_ms(broker));
			continue;
		}
		has_lingering = has_lingering || gpu->lingers;
		has_others = has_others || !gpu->lingers || has_memory_beside_leases(gpu);
	}
	if (!has_lingering && !has_others) {
		broker->state.probe_backoff = 0;
		return;
	}
	if (view->probe.started_ms != broker->state.judged_ms) {
		/* a new probe that has not ended the wait; the first one is no failure yet */
		broker->state.probe_backoff += broker->state.judged_ms != 0;
		broker->state.judged_ms = view->probe.started_ms;
	}
	at_ms = next_probe_ms(broker, has_lingering, has_others);
	/* our own nvidia-smi failed, and another process has had an answer since */
	if (broker->prober.others_see)
		at_ms = min_i64(at_ms, view->probe.finished_ms + PROBE_AGAIN_MS);
	if (at_ms <= broker->state.now_ms)
		prober_want(&broker->prober, broker->state.now_ms);
	else
		broker->state.wake_ms = min_i64(broker->state.wake_ms, at_ms);
}

void broker_set_alarm(struct broker *broker)
{
	set_alarm_for_silent_gpus(broker);
}

bool broker_wants_links(struct broker *broker)
{
	const struct request *request = &broker->ticket.request;
	struct need need = request_need(request);
	unsigned count = 0;

	for (unsigned slot = 0; slot < broker->view.slots; slot++)
		count += broker->view.plan[slot].exists &&
			 gpuset_has(&request->allow, slot);
	/* links matter only for several whole GPUs out of more */
	if (request->gpus <= 1 || !need_is_whole(&need) || count <= request->gpus ||
		prober_knows_topology(
			&broker->prober, broker->state.now_ms, &broker->view.probe))
		return false;
	prober_want_topology(&broker->prober, broker->state.now_ms);
	return true;
}

/* --- what is watched ------------------------------------------------------------ */

/* Returns how many descriptors lease files and lives may have: fewer under a low limit. */
static unsigned find_fds_most(void)
{
	struct rlimit limit;
	unsigned missing;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FDS_ALL)
		return BROKER_FDS_MOST;
	missing = FDS_ALL - (unsigned)limit.rlim_cur;
	return missing < BROKER_FDS_MOST - FDS_LEAST ? BROKER_FDS_MOST - missing
						     : FDS_LEAST;
}

/*
 * Divides the descriptors between lease files, which the next turn can open again, and lives.  If
 * there are many GPUs, their files would leave too few.
 */
static void divide_fds(struct broker *broker)
{
	struct snapshot *view = &broker->view;

	if (!broker->state.fds_most)
		broker->state.fds_most = find_fds_most();
	view->lives.most = broker->state.fds_most;
	if (view->slots > view->lives.most * 2 / 3)
		snapshot_close_files(view);
	else
		view->lives.most -= view->slots;
}

/*
 * Watches the owners that the plan has marked: their end can change our verdict.  The looks at
 * those for which there is no descriptor are the rarer, the more tickets are before ours.
 */
static int watch_owners(struct broker *broker)
{
	int64_t ahead = (int64_t)(broker->number - broker->state.hint);

	broker->view.lives.look_ms =
		min_i64(CROWD_MOST_MS, CROWD_MS * (1 + max_i64(0, ahead) / CROWD_EACH));
	divide_fds(broker);
	return liveness_set_watch(
		&broker->view.lives, &broker->watch, broker->state.now_ms);
}

/*
 * Watches the processes without a lease that keep GPUs which our job could use.  Sets *@set to the
 * slots of the GPUs with a watched process; the caller closes the pidfds of these slots.
 */
static int watch_culprits(
	struct broker *broker, struct gpuset *set, int pidfds[GPUSET_MAX])
{
	const struct snapshot *view = &broker->view;
	int r = 0;

	*set = GPUSET_NONE;
	for (unsigned slot = 0; slot < view->slots && r == 0; slot++) {
		if (!view->gpus[slot].culprit || !is_silent(broker, slot) ||
			gpuset_count(set) ==
				CULPRITS_MOST) /* the next probe shows the rest */
			continue;
		pidfds[slot] = pidfd_open_process(view->gpus[slot].culprit);
		if (pidfds[slot] <
			0) /* it has ended, or is hidden: the next probe tells */
			continue;
		gpuset_add(set, slot);
		r = watch_add(&broker->watch, pidfds[slot], POLLIN);
	}
	return r;
}

/* Watches what the prober waits for; its deadline ends the wait, too. */
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

/* Whether a file that brings events to this waiter was removed or replaced. */
static bool is_damaged(const struct broker *broker)
{
	const char *token = broker->ticket.owner.token;

	/* its bell and live FIFO; the ticket file; the folder of lease files */
	return (broker->bell_fd >= 0 && !fifo_is_named(broker->dir, FIFO_BELL, token)) ||
	       (broker->live_fd >= 0 && !fifo_is_named(broker->dir, FIFO_LIVE, token)) ||
	       ticket_file_check(broker->dir->fd, &broker->queue.file) != 0 ||
	       snapshot_has_new_names(&broker->view);
}

/*
 * Sleeps for 0.25 ms for each ticket between the first and our own, 16 ms at most.  The end of a
 * lease wakes all waiters at once, and mostly the first of them takes the GPUs.  So the later
 * waiters leave the processors to it, and read the state once, after the first has written it.
 */
static void stand_back(const struct broker *broker)
{
	int64_t ahead = (int64_t)(broker->number - broker->state.hint);
	struct timespec span = { .tv_nsec = (long)min_i64(ahead, STAND_BACK_MOST) *
					    STAND_BACK_NS };

	if (!broker->state.is_first)
		(void)nanosleep(&span, NULL);
}

/*
 * Waits for an event or the alarm, with a ticket.  First removes dead tickets if there are many; it
 * looks for events between two slices of that work.  Damage raises no event, so every 15 s a few
 * system calls look for it.
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
		broker->state.is_damaged = r == WATCH_NOTHING && is_damaged(broker);
	} while (r == WATCH_NOTHING && !broker->state.is_damaged);
	if (r == 0)
		stand_back(broker);
	return r < 0 ? r : 0;
}

/* Watches what others ask of this job, and the alarm. */
static int watch_orders(struct broker *broker)
{
	int r = watch_add(&broker->watch, broker->bell_fd, POLLIN);

	watch_until(&broker->watch, broker->state.wake_ms);
	if (r == 0)
		r = watch_add(&broker->watch, broker->input.leash_fd, POLLIN);
	return r < 0 ? r : watch_add(&broker->watch, broker->input.signal_fd, POLLIN);
}

int64_t broker_let_go(struct broker *broker, int error)
{
	int64_t *pause_ms = &broker->state.pause_ms;
	unsigned most = broker->state.fds_most;

	/* this process may have inherited more descriptors than its limit leaves room for */
	if ((error == -EMFILE || error == -ENFILE) && most > FDS_LEAST)
		broker->state.fds_most = most / 2 > FDS_LEAST ? most / 2 : FDS_LEAST;
	snapshot_close_files(&broker->view);
	liveness_set_let_go(&broker->view.lives);
	*pause_ms = *pause_ms ? min_i64(*pause_ms * 2, PAUSE_MOST_MS) : PAUSE_MS;
	return clock_boot_ms() + *pause_ms;
}

/* Waits although it cannot watch, which needs memory. */
static void wait_blindly(struct broker *broker, int error)
{
	int64_t span_ms = broker_let_go(broker, error) - clock_boot_ms();

	/* a signal, an order and --max-wait have to be seen soon */
	(void)poll(NULL, 0, (int)min_i64(BLIND_MS, max_i64(0, span_ms)));
}

int broker_wait(struct broker *broker, int64_t until_ms)
{
	struct gpuset watched = GPUSET_NONE;
	int pidfds[GPUSET_MAX];
	int r;

	watch_begin(&broker->watch);
	watch_until(&broker->watch, until_ms);
	r = watch_probe(broker);
	if (r == 0 && broker->number)
		r = watch_orders(broker);
	/* after an errno this process holds nothing of the others, and waits for the alarm */
	if (r == 0 && broker->number && !broker->state.trouble) {
		r = watch_owners(broker);
		/* a probe that runs shows anyway whether the culprits are gone */
		if (r == 0 && !prober_is_busy(&broker->prober))
			r = watch_culprits(broker, &watched, pidfds);
	}
	if (r == 0)
		r = broker->number ? wait_with_ticket(broker)
				   : watch_wait(&broker->watch);
	if (r < 0 && broker->number) {
		wait_blindly(broker, r);
		r = 0;
	}
	statedir_refresh(broker->dir);
	gpuset_for_each (slot, &watched) {
		/* the GPU of this process is free now or soon: do not wait for the due probe */
		if (pidfd_has_ended(pidfds[slot])) {
			broker->state.probe_backoff = 0;
			prober_want(&broker->prober, clock_boot_ms());
		}
		close_fd(&pidfds[slot]);
	}
	prober_step(&broker->prober, clock_boot_ms(), &broker->view.probe,
		&broker->view.has_probe);
	return r;
}
