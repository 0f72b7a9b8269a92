#include <errno.h>

#include "broker_parts.h"
#include "clock.h"
#include "commit.h"
#include "inventory.h"

enum {
	TURN_TRIES = 64,
	AGAIN_MS = 5,
	LOCKED_MS = 1000,
	WITNESS_MS = 1000, /* what a watchdog takes at most for its look, mostly 10 ms */
};

/* Inside a turn: something changed under our hands, look again. */
enum { TURN_AGAIN = 100 };

int broker_init(struct broker *broker, const struct statedir *dir,
	const struct prober_config *config)
{
	broker->dir = dir;
	broker->live_fd = broker->bell_fd = -1;
	broker->leash_fd = broker->signal_fd = -1;
	broker->debt = BROKER_DEBT_NONE;
	broker->watch = WATCH_NONE;
	prober_init(&broker->prober, dir, config);
	snapshot_init(&broker->view, dir);
	broker->view.usage = config->usage;
	hold_begin(&broker->book, &broker->queue, &broker->view, 0);
	return queue_open(&broker->queue, dir);
}

void broker_release(struct broker *broker)
{
	close_fd(&broker->live_fd);
	close_fd(&broker->bell_fd);
	close_fd(&broker->debt.live_fd);
	prober_release(&broker->prober);
	queue_release(&broker->queue);
	snapshot_release(&broker->view);
	passover_release(&broker->passover);
	preempt_release(&broker->preempt);
	hold_release(&broker->book);
	watch_release(&broker->watch);
}

/* --- looking ----------------------------------------------------------------------- */

/* Files that are new, or were changed, are read; and new ones learn their slots. */
static int adopt_new(struct broker *broker)
{
	int r = snapshot_read(&broker->view, broker->now_ms);

	if (r == 0)
		r = inventory_adopt(&broker->view, broker->ticket.owner.token);
	return r > 0 ? snapshot_read(&broker->view, broker->now_ms) : r;
}

/*
 * Takes out of the request the slots that have become another GPU's: until the ticket was taken
 * nothing kept other processes from reusing them.
 */
static void forget_moved(struct broker *broker)
{
	struct request *request = &broker->ticket.request;

	if (!gpuset_equals(&request->allow, &GPUSET_ALL))
		request->allow = gpuset_minus(&request->allow, &broker->view.moved);
}

/* Leases, lives and probe; GPUs that are new get their files, and are read in turn. */
int broker_look(struct broker *broker)
{
	const char *token = broker->ticket.owner.token;
	struct snapshot *view = &broker->view;
	int r;

	broker->now_ms = clock_boot_ms();
	r = snapshot_read(view, broker->now_ms);
	if (r < 0)
		return r;
	prober_refresh(&broker->prober, broker->now_ms, &view->probe, &view->has_probe);
	if (view->has_probe && (view->probe.started_ms != broker->adopted_ms ||
				       view->names.changes != broker->adopted_names)) {
		broker->adopted_names = view->names.changes;
		r = inventory_adopt(view, token);
		/* -ENOENT: the folder had been removed */
		if (r == -ENOENT && statedir_repair(view->dir) == 0)
			r = inventory_adopt(view, token);
		if (r > 0)
			r = adopt_new(broker);
		if (r < 0)
			return r;
		broker->adopted_ms = view->probe.started_ms;
	}
	forget_moved(broker);
	snapshot_find_links(view, &broker->prober, broker->now_ms);
	return snapshot_judge(view, broker->now_ms);
}

int broker_survey(struct broker *broker)
{
	int r;

	lives_begin(&broker->view.lives);
	r = broker_look(broker);
	lives_end(&broker->view.lives);
	return r;
}

static bool is_any_outdated(const struct snapshot *view)
{
	for (unsigned slot = 0; slot < view->slots; slot++)
		if (snapshot_is_outdated(view, &view->gpus[slot]))
			return true;
	return false;
}

/* One that somebody else had begun before may say nothing of who has ended since. */
static bool is_answer(const struct snapshot *view, int64_t asked_ms)
{
	return view->has_probe && view->probe.finished_ms >= asked_ms &&
	       !is_any_outdated(view);
}

int broker_probe(struct broker *broker, int64_t until_ms)
{
	struct snapshot *view = &broker->view;
	int64_t asked_ms = clock_boot_ms();
	int r = 0;

	while (r == 0 && clock_boot_ms() < until_ms) {
		prober_refresh(
			&broker->prober, clock_boot_ms(), &view->probe, &view->has_probe);
		if (is_answer(view, asked_ms))
			break;
		prober_want(&broker->prober, clock_boot_ms());
		r = broker_wait(broker, until_ms);
	}
	return r < 0 ? r : broker_survey(broker);
}

/* --- a turn ----------------------------------------------------------------------- */

/* Reads everything and plans: tickets first, then leases, then who lives. */
static int read_and_plan(struct broker *broker, struct verdict *ret, struct why *why)
{
	struct queue_row own;
	int r = queue_begin(&broker->queue, broker->number);

	if (r == 0)
		r = queue_find(&broker->queue, broker->number, &own);
	if (r < 0)
		return r;
	if (r != 0 || strcmp(own.ticket.owner.token, broker->ticket.owner.token) != 0) {
		r = broker_rejoin(broker, why);
		return r < 0 ? r : TURN_AGAIN;
	}
	if (own.is_cancelled) {
		broker->cancelled_by = own.cancelled_by;
		return BROKER_CANCELLED;
	}
	lives_begin(&broker->view.lives);
	r = broker_look(broker);
	if (r < 0)
		why_set(why, "cannot use the lease files in '%s/gpu': %s",
			broker->dir->path, strerror(-r));
	if (r == 0)
		r = broker_plan(broker, &own, ret);
	lives_end(&broker->view.lives);
	return r;
}

/* --- starting ---------------------------------------------------------------------- */

bool broker_is_probe_fresh(const struct broker *broker, const struct gpuset *set)
{
	const struct snapshot *view = &broker->view;

	if (gpuset_is_empty(set))
		return true;
	if (!view->has_probe ||
		!prober_serves(&broker->prober, &view->probe, broker->now_ms))
		return false;
	gpuset_for_each (slot, set)
		if (snapshot_is_outdated(view, &view->gpus[slot]))
			return false;
	return true;
}

static void make_lease(const struct broker *broker, struct lease *lease)
{
	const struct ticket *ticket = &broker->ticket;

	*lease = (struct lease){
		.ticket = broker->number,
		.job = ticket->job,
		.attempt = ticket->attempt,
		.owner = broker->heir ? *broker->heir : ticket->owner,
		.gpus = broker->verdict.gpus,
		.share_percent = ticket->request.share_percent,
		.vram_mib = ticket->request.vram_mib,
		.limit_ms = ticket->request.limit_ms,
		.grace_ms = ticket->request.grace_ms,
		.since_ms = clock_boot_ms(),
		.waited_ms = clock_boot_ms() - ticket->since_ms,
		.priority = ticket->request.priority,
		.is_supervised = ticket->request.is_supervised,
		.is_preemptible = ticket->request.is_preemptible,
		.leave_ms = ticket->request.leave_ms,
		.is_shell = broker->heir && broker->heir_is_shell,
	};
	if (broker->recorder)
		text_copy(
			lease->recorded_by, sizeof(lease->recorded_by), broker->recorder);
	text_copy(lease->boot, sizeof(lease->boot), ticket->boot);
	text_copy(lease->user, sizeof(lease->user), ticket->user);
	text_copy(lease->name, sizeof(lease->name), ticket->request.name);
	text_copy(lease->command, sizeof(lease->command), ticket->request.command);
}

/* The ticket says granted, the bell goes, the hint moves: nobody need wait for these. */
void broker_finish(struct broker *broker)
{
	broker->ticket.state = TICKET_GRANTED;
	broker->ticket.stuck[0] = '\0';
	broker->ticket.turn++;
	broker->ticket.turn_ms = clock_boot_ms();
	(void)!ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
	broker->orders_from = broker->queue.end;
	/* who may be preempted wants to hear of it */
	if (!broker->ticket.request.is_preemptible ||
		!broker->ticket.request.is_supervised) {
		beacon_remove(broker->dir, BEACON_BELL, broker->ticket.owner.token);
		close_fd(&broker->bell_fd);
	}
	if (broker->hint == broker->number)
		broker->hint++;
	queue_move_hint(&broker->queue, broker->hint);
	if (broker->passover.passed.count)
		broker_ring_behind(broker);
	if (broker->number % BROKER_SWEEP_EVERY == 0)
		beacon_sweep(broker->dir);
}

/* What ended because somebody wanted it, for the history. */
static void note_cancels(struct broker *broker)
{
	for (size_t i = 0; i < broker->view.lease_count; i++) {
		struct snapshot_lease *lease = &broker->view.leases[i];

		lease->is_cancelled =
			queue_is_cancelled(&broker->queue, lease_job(&lease->lease),
				lease->lease.owner.uid, &lease->cancelled_by);
	}
}

int broker_write_lease(struct broker *broker, struct why *why)
{
	struct lease lease;
	int r;

	make_lease(broker, &lease);
	note_cancels(broker);
	r = commit_write(&broker->view, &broker->verdict.gpus, &lease);
	if (r < 0)
		why_set(why, "cannot write a lease in '%s/gpu': %s", broker->dir->path,
			strerror(-r));
	return r;
}

/* With the locks held: the same verdict once more, then the leases. */
static int take_locked(struct broker *broker, struct why *why)
{
	struct gpuset set = broker->verdict.gpus;
	struct verdict again;
	int r = read_and_plan(broker, &again, why);

	if (r != 0)
		return r;
	if (again.kind != VERDICT_START || !gpuset_equals(&again.gpus, &set) ||
		!commit_is_locked(&broker->view, &set) ||
		!broker_is_probe_fresh(broker, &set) ||
		snapshot_wants_look(&broker->view, &set))
		return TURN_AGAIN;
	r = broker_write_lease(broker, why);
	return r < 0 ? r : BROKER_GRANTED;
}

static int take(struct broker *broker, struct why *why)
{
	int r = commit_lock(&broker->view, &broker->verdict.gpus);

	if (r == COMMIT_LOCKED)
		return TURN_AGAIN;
	if (r == -EBADF) {
		/* a file is missing: the next look makes it */
		broker->adopted_ms = 0;
		return TURN_AGAIN;
	}
	if (r < 0)
		return r;
	r = take_locked(broker, why);
	commit_unlock(&broker->view);
	if (r == BROKER_GRANTED)
		broker_finish(broker);
	return r;
}

/* --- turns ------------------------------------------------------------------------- */

/* Leaves word of this turn in the ticket, for those who would pass it over. */
static int end_turn(struct broker *broker, bool is_spinning)
{
	broker_tell_stuck(broker, is_spinning);
	broker->ticket.turn++;
	broker->ticket.turn_ms = clock_boot_ms();
	return ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
}

static int turn_once(struct broker *broker, struct why *why)
{
	int64_t wake_ms;
	bool could_start;
	int r = read_and_plan(broker, &broker->verdict, why);

	broker->wake_ms = INT64_MAX;
	if (r != 0)
		return r;
	if (commit_mend(&broker->view))
		return TURN_AGAIN;
	if (broker->verdict.kind == VERDICT_START) {
		bool is_fresh = broker_is_probe_fresh(broker, &broker->verdict.gpus);

		if (!is_fresh)
			prober_want(&broker->prober, broker->now_ms);
		/* beside nvidia-smi, which takes longer */
		r = commit_look(&broker->view, &broker->verdict.gpus);
		if (r != 0)
			return r < 0 ? r : TURN_AGAIN;
		if (is_fresh && !broker_wants_links(broker))
			return take(broker, why);
		return BROKER_PROBING;
	}
	if (broker->view.is_any_unclear) {
		r = commit_look(&broker->view, &GPUSET_NONE);
		if (r != 0)
			return r < 0 ? r : TURN_AGAIN;
	}
	could_start = broker_could_start(broker);
	r = broker_preempt(broker, &could_start);
	if (r != 0)
		return r < 0 ? r : r == BROKER_ASKED ? TURN_AGAIN : BROKER_PROBING;
	r = broker_looks_ahead(broker, could_start);
	if (r < 0)
		return r;
	could_start = r > 0;
	r = passover_consider(&broker->passover, &broker->queue, broker_place(broker),
		could_start, broker->now_ms, &wake_ms);
	if (r != 0)
		return r == PASSOVER_CHANGED ? TURN_AGAIN : r;
	broker->wake_ms = min_i64(broker->wake_ms, wake_ms);
	r = broker_pass_stuck(broker, could_start);
	if (r != 0)
		return r == PASSOVER_CHANGED ? TURN_AGAIN : r;
	if (commit_end_lingering(&broker->view))
		return TURN_AGAIN;
	broker->wake_ms = min_i64(broker->wake_ms, broker->book.look.wake_ms);
	broker_set_alarm(broker);
	return prober_is_busy(&broker->prober) ? BROKER_PROBING : BROKER_WAITING;
}

/* What the last attempt had cannot be given back yet, and comes before all else. */
static int wait_for_lock(struct broker *broker)
{
	int slot = gpuset_next(&broker->debt.gpus, 0), r;

	broker->wake_ms = clock_boot_ms() + LOCKED_MS;
	broker->verdict = (struct verdict){ .kind = VERDICT_GPU,
		.wanted = broker->ticket.request.gpus,
		.need = request_need(&broker->ticket.request),
		.state = GPU_LOCKED,
		.slot = slot < 0 ? 0 : (uint32_t)slot };
	r = end_turn(broker, false);
	return r < 0 ? r : BROKER_WAITING;
}

int broker_turn(struct broker *broker, struct why *why)
{
	int r = TURN_AGAIN, ended;
	bool is_spinning;

	broker->has_rejoined = false;
	if (broker->is_damaged)
		broker_mend(broker);
	beacon_drain(
		broker->bell_fd); /* before reading, never after: a ring is not lost */
	if (broker_give_back(broker) != 0)
		return wait_for_lock(broker);
	for (int i = 0; i < TURN_TRIES && r == TURN_AGAIN; i++)
		r = turn_once(broker, why);
	is_spinning = r == TURN_AGAIN;
	if (is_spinning) {
		/* others are quicker, time and again: let them */
		broker->wake_ms = clock_boot_ms() + AGAIN_MS;
		r = BROKER_WAITING;
	}
	if (r != BROKER_WAITING && r != BROKER_PROBING)
		return r;
	ended = end_turn(broker, is_spinning);
	return ended < 0 ? ended : r;
}

bool broker_looks_again(struct broker *broker)
{
	if (!is_any_outdated(&broker->view))
		return false;
	prober_want(&broker->prober, broker->now_ms);
	return true;
}

/* A watchdog holds the FIFO of such a job until it has looked for what the job has left. */
static bool has_witness(const struct lease *lease)
{
	return lease->limit_ms || lease->is_supervised || lease->recorded_by[0];
}

int64_t broker_ending_ms(const struct broker *broker)
{
	int64_t ret = INT64_MAX;

	for (size_t i = 0; i < broker->view.lease_count; i++) {
		const struct snapshot_lease *seen = &broker->view.leases[i];
		struct gpuset wanted =
			gpuset_and(&seen->seen, &broker->ticket.request.allow);

		if (seen->is_dead && !seen->is_over && !seen->lease.left[0] &&
			has_witness(&seen->lease) && !gpuset_is_empty(&wanted) &&
			broker->now_ms < seen->dead_ms + WITNESS_MS)
			ret = min_i64(ret, seen->dead_ms + WITNESS_MS);
	}
	return ret;
}
