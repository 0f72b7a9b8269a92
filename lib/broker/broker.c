/*
 * The life of a turn.  It begins with broker_turn(), near the end of this file.
 *
 *	broker_turn
 *	  broker_give_back	the lease of an earlier attempt comes first
 *	  turn_once		repeated while it comes to BROKER_AGAIN, 64 times at most
 *	    read_and_plan	tickets, leases, liveness, probe -> a verdict
 *	    broker_begin	a job that was to begin later joins the queue anew
 *	    commit_mend		damaged lease files
 *	    try_to_start	if the verdict is to start:
 *	      commit_look	  are there leftover processes of an ended job?
 *	      take_gpus		  locks the lease files of these GPUs
 *	        take_locked	  reads and plans again; the same verdict: writes the lease
 *	    prepare_to_wait	if not: preemption, tickets ahead, timers
 *	  end_turn		notes in the ticket that its owner has acted
 *
 * Reading takes no lock, so other processes may write at any time.  This is safe because the second
 * reading has the locks: no other process can write a lease for these GPUs until they are released,
 * and if anything that the plan rests on has changed, the second verdict differs from the first.
 *
 * broker.h declares the functions that callers use, broker_parts.h those that the other parts use.
 */
#include <errno.h>

#include "bell.h"
#include "broker_parts.h"
#include "clock.h"
#include "commit.h"
#include "inventory.h"
#include "live_fifo.h"
#include "stricter.h"

enum {
	TURN_TRIES = 64,  /* after these, other processes are quicker each time: wait */
	AGAIN_MS = 5,     /* until the next turn in that case */
	LOCKED_MS = 1000, /* until the next try to get a lock that was held for long */
	SINGLETON_LOCK_MS = 50, /* how long to try to get the lock of a singleton */
	WITNESS_MS = 1000,      /* the most that a watchdog's look takes; mostly 10 ms */
};

int broker_init(struct broker *broker, const struct statedir *dir,
	const struct prober_config *config)
{
	broker->dir = dir;
	broker->live_fd = broker->bell_fd = broker->heir_fd = -1;
	broker->input.leash_fd = broker->input.signal_fd = -1;
	broker->state.debt = BROKER_DEBT_NONE;
	broker->watch = WATCH_NONE;
	prober_init(&broker->prober, dir, config);
	snapshot_init(&broker->view, dir);
	broker->view.usage = config->usage;
	broker->view.lives.most = BROKER_FDS_MOST;
	dependency_begin(&broker->book, &broker->queue, &broker->view, 0);
	return queue_open(&broker->queue, dir);
}

void broker_release(struct broker *broker)
{
	close_fd(&broker->live_fd);
	close_fd(&broker->bell_fd);
	close_fd(&broker->heir_fd);
	close_fd(&broker->state.debt.live_fd);
	prober_release(&broker->prober);
	queue_release(&broker->queue);
	snapshot_release(&broker->view);
	passover_release(&broker->passover);
	preempt_release(&broker->preempt);
	dependency_release(&broker->book);
	watch_release(&broker->watch);
}

/* --- reading -------------------------------------------------------------------- */

/*
 * Reads again after lease files were made or changed.  Record 0 of a new file lacks its slot,
 * because the link of the slot is made after the file; so it is written a second time.
 */
static int read_new_files(struct broker *broker)
{
	int r = snapshot_read(&broker->view, broker->state.now_ms);

	if (r == 0)
		r = inventory_adopt(&broker->view, broker->ticket.owner.token);
	return r > 0 ? snapshot_read(&broker->view, broker->state.now_ms) : r;
}

/*
 * Judges the GPUs, and removes from the request those that only the job's own thresholds refuse.
 * Returns 0 or a negative errno.
 */
static int judge_gpus(struct broker *broker)
{
	struct gpuset *refused = &broker->result.refused;
	struct gpuset *allow = &broker->ticket.request.allow;
	int r;

	if (!broker->input.own_usage)
		return snapshot_judge(&broker->view, broker->state.now_ms);
	r = stricter_judge(&broker->view, broker->input.own_usage,
		&broker->ticket.request, broker->state.now_ms, refused);
	*allow = gpuset_minus(allow, refused);
	return r;
}

void broker_set_request(struct broker *broker, const struct request *request)
{
	struct broker_choice *choice = &broker->choice;

	broker->ticket.request = *request;
	choice->allow = broker->state.told = request->allow;
	choice->prefer = plan_row_of(0, &broker->ticket).prefer;
	for (unsigned slot = 0; slot < broker->view.known; slot++)
		text_copy(choice->uuids[slot], UUID_SIZE,
			broker->view.gpus[slot].file.gpu.uuid);
}

/* Returns the slot of the GPU that had @slot when it was chosen; -1: it has none now. */
static int find_chosen(const struct broker *broker, unsigned slot)
{
	const struct snapshot *view = &broker->view;
	const char *uuid = broker->choice.uuids[slot];

	if (slot < view->slots && strcmp(view->gpus[slot].file.gpu.uuid, uuid) == 0)
		return (int)slot;
	return uuid[0] ? snapshot_find_gpu(view, uuid) : -1;
}

/*
 * Writes the choice into the request by the slots that its GPUs have now: the user chose GPUs, and
 * a slot may lead to another GPU since.  Also those that the job's own thresholds have refused,
 * because they are judged anew.
 */
static void choose_again(struct broker *broker)
{
	const struct broker_choice *choice = &broker->choice;
	struct request *request = &broker->ticket.request;
	struct text prefer = TEXT_ON(request->prefer);

	request->allow = choice->allow;
	if (!gpuset_equals(&choice->allow, &GPUSET_ALL)) {
		request->allow = GPUSET_NONE;
		gpuset_for_each (slot, &choice->allow)
			gpuset_add(&request->allow,
				(unsigned)find_chosen(broker, (unsigned)slot));
	}
	for (unsigned i = 0; i < choice->prefer.count; i++) {
		int slot = find_chosen(broker, choice->prefer.slots[i]);

		if (slot >= 0)
			text_addf(&prefer, "%02x", (unsigned)slot);
	}
}

int broker_look(struct broker *broker)
{
	const char *token = broker->ticket.owner.token;
	struct snapshot *view = &broker->view;
	int r;

	broker->state.now_ms = clock_boot_ms();
	r = snapshot_read(view, broker->state.now_ms);
	if (r < 0)
		return r;
	prober_refresh(
		&broker->prober, broker->state.now_ms, &view->probe, &view->has_probe);
	if (view->has_probe &&
		(view->probe.started_ms != broker->state.adopted_ms ||
			view->names.changes != broker->state.adopted_names)) {
		/* a new probe, or names in gpu/ have changed: each GPU gets its lease file */
		broker->state.adopted_names = view->names.changes;
		r = inventory_adopt(view, token);
		/* -ENOENT: gpu/ was removed */
		if (r == -ENOENT && statedir_repair(view->dir) == 0)
			r = inventory_adopt(view, token);
		if (r > 0)
			r = read_new_files(broker);
		if (r < 0)
			return r;
		broker->state.adopted_ms = view->probe.started_ms;
	}
	choose_again(broker);
	snapshot_find_links(view, &broker->prober, broker->state.now_ms);
	return judge_gpus(broker);
}

int broker_survey(struct broker *broker)
{
	int r;

	liveness_set_begin(&broker->view.lives);
	r = broker_look(broker);
	liveness_set_end(&broker->view.lives);
	return r;
}

/* Whether a lease has ended on a GPU since the probe that was last read began. */
static bool is_any_outdated(const struct snapshot *view)
{
	for (unsigned slot = 0; slot < view->slots; slot++)
		if (snapshot_is_outdated(view, &view->gpus[slot]))
			return true;
	return false;
}

/*
 * Whether the probe answers the question asked at @asked_ms.  Another process may have started it
 * before that, so it may miss leases that have ended since.
 */
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

/*
 * Reads everything and plans.  Reads the tickets first, then the leases, and judges owners last: in
 * another order, a ticket that is granted in between would be seen neither as waiting nor as a
 * lease.  Returns 0 with *@ret, BROKER_AGAIN, BROKER_CANCELLED, BROKER_HOPELESS, or a negative
 * errno.
 */
static int read_and_plan(struct broker *broker, struct verdict *ret, struct why *why)
{
	struct queue_row own;
	int r = queue_begin(&broker->queue, broker->number);

	if (r == 0)
		r = queue_find(&broker->queue, broker->number, &own);
	if (r < 0)
		return r;
	/* the file was replaced, or the record of our number is not ours: take a new ticket */
	if (r != 0 || strcmp(own.ticket.owner.token, broker->ticket.owner.token) != 0) {
		r = broker_rejoin(broker, why);
		return r < 0 ? r : BROKER_AGAIN;
	}
	if (own.is_cancelled) {
		broker->result.cancelled_by = own.cancelled_by;
		return BROKER_CANCELLED;
	}
	r = broker_obey_wish(broker);
	if (r == 0 && broker_is_share_due(broker))
		r = broker_take_share(broker, why);
	if (r != 0)
		return r;
	liveness_set_begin(&broker->view.lives);
	r = broker_look(broker);
	if (r < 0)
		why_set(why, "cannot use the lease files in '%s/gpu': %s",
			broker->dir->path, strerror(-r));
	if (r == 0)
		r = broker_plan(broker, &own, ret);
	liveness_set_end(&broker->view.lives);
	return r;
}

/* --- taking the GPUs ------------------------------------------------------------ */

bool broker_is_probe_fresh(const struct broker *broker, const struct gpuset *set)
{
	const struct snapshot *view = &broker->view;

	if (gpuset_is_empty(set))
		return true;
	if (!view->has_probe ||
		!prober_serves(&broker->prober, &view->probe, broker->state.now_ms))
		return false;
	gpuset_for_each (slot, set)
		if (snapshot_is_outdated(view, &view->gpus[slot]))
			return false;
	return true;
}

/* Fills in the lease of this job, or of its heir, from the ticket and the verdict. */
static void make_lease(const struct broker *broker, struct lease *lease)
{
	const struct ticket *ticket = &broker->ticket;

	*lease = (struct lease){
		.ticket = broker->number,
		.job = ticket->job,
		.attempt = ticket->attempt,
		.owner = broker->input.heir ? *broker->input.heir : ticket->owner,
		.gpus = broker->result.verdict.gpus,
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
		.unused_ok_ms = ticket->request.unused_ok_ms,
		.is_shell = broker->input.heir && broker->input.heir_is_shell,
	};
	if (passover_plans_any(&broker->passover))
		lease->early =
			ticket->order_ms > LEASE_EARLY ? ticket->order_ms : LEASE_EARLY;
	if (broker->input.recorder)
		text_copy(lease->recorded_by, sizeof(lease->recorded_by),
			broker->input.recorder);
	text_copy(lease->boot, sizeof(lease->boot), ticket->boot);
	text_copy(lease->user, sizeof(lease->user), ticket->user);
	text_copy(lease->name, sizeof(lease->name), ticket->request.name);
	lease->name_hash = ticket->request.name_hash;
	text_copy(lease->command, sizeof(lease->command), ticket->request.command);
	gpuset_for_each (slot, &lease->gpus) {
		const struct plan_gpu *gpu = &broker->view.plan[slot];
		struct need need = request_need(&ticket->request);
		unsigned percent = quota_gpu_percent(gpu, &need);

		if (need.percent && percent > need.percent &&
			percent > lease->counts_percent)
			lease->counts_percent = percent;
	}
}

/* Whether a lease file has the token, whether its lease is over or not. */
static bool is_leased(void *view, const char *token)
{
	return snapshot_find_token(view, token) != NULL;
}

/*
 * From here on the lease exists, and the job may run.  None of these steps is needed for that: if
 * this process dies in between, readers go by the lease, and others move the hint and sweep.
 */
void broker_finish(struct broker *broker)
{
	/* a request to preempt that was appended before this was meant for an earlier lease */
	broker->state.orders_from = broker->queue.end;
	/* a supervised job keeps its bell, by which it is asked to go back into the queue */
	if (!broker->ticket.request.is_supervised)
		broker_remove_bell(broker);
	/* our ticket was the first that waited, and waits no more */
	if (broker->state.hint == broker->number)
		broker->state.hint++;
	queue_move_hint(&broker->queue, broker->state.hint);
	if (broker->passover.passed.count)
		broker_ring_behind(broker);
	else
		broker_ring_next(broker);
	/* not every start pays for the search for FIFOs that no ticket names */
	if (broker->number % BROKER_SWEEP_EVERY == 0) {
		live_fifo_sweep(broker->dir, is_leased, &broker->view);
		bell_sweep(broker->dir);
	}
}

/* Writes @state into the job's ticket, which counts as a turn. */
static void write_state(struct broker *broker, uint32_t state)
{
	broker->ticket.state = state;
	broker->ticket.stuck[0] = '\0';
	broker->ticket.turn++;
	broker->ticket.turn_ms = clock_boot_ms();
	(void)!ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
}

/*
 * After the lease was written: whether it is within the limits.  Returns 0, BROKER_AGAIN if it is
 * not, or a negative errno.
 *
 * Two processes that take different GPUs have no lock in common.  Between the reading on which its
 * plan rests and its lease, each may miss the lease of the other, above all if it is stopped there.
 * So both look again after they have written, and of two that are too much at least one sees that.
 * A common lock would do, too, but a process that is stopped with it would hold up all others.
 */
static int check_limits(struct broker *broker, const struct lease *lease)
{
	/* 100 KiB, of which little is touched: one is enough for a process */
	static struct quota quota;
	struct snapshot *view = &broker->view;
	struct plan_row row = plan_row_of(broker->number, &broker->ticket);
	struct quota_excess excess;
	int r;

	if (!quota_has_limit(&view->facts.limits, &row))
		return 0;
	liveness_set_begin(&view->lives);
	r = snapshot_read(view, clock_boot_ms());
	liveness_set_end(&view->lives);
	if (r < 0)
		return r;
	quota_begin(&quota, &view->facts.limits, NULL, 0);
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct lease *other = &view->leases[i].lease;
		struct need counts = { .percent = lease_counts_percent(other) };

		if (!view->leases[i].is_over &&
			strcmp(other->owner.token, lease->owner.token) != 0)
			quota_count(&quota, other->owner.uid, gpuset_count(&other->gpus),
				&counts);
	}
	row.need = (struct need){ .percent = lease_counts_percent(lease) };
	return quota_forbids(&quota, &row, NULL, &excess) ? BROKER_AGAIN : 0;
}

static int write_lease(struct broker *broker, struct why *why)
{
	const struct gpuset *set = &broker->result.verdict.gpus;
	struct lease lease;
	int r;

	make_lease(broker, &lease);
	r = commit_write(&broker->view, set, &lease);
	if (r < 0) {
		why_set(why, "cannot write a lease in '%s/gpu': %s", broker->dir->path,
			strerror(-r));
		return r;
	}
	r = check_limits(broker, &lease);
	if (r == 0)
		write_state(broker, TICKET_GRANTED);
	/*
	 * From now on, other processes find out if they cannot read the lease of this ticket
	 * (integrity.h).  If a lease file was deleted before, no process can read the lease in it,
	 * and another job may have the GPU.
	 */
	if (r == 0 && commit_is_current(&broker->view, set))
		return 0;
	if (r == 0)
		write_state(broker, TICKET_WAITING);
	commit_erase(&broker->view, set, lease.owner.token);
	bell_ring_all(broker->dir);
	return r < 0 ? r : BROKER_AGAIN;
}

int broker_write_lease(struct broker *broker, struct why *why)
{
	const struct owner *heir = broker->input.heir;
	int r = 0;

	/* before the lease: from then on readers that cannot see the heir go by its FIFO */
	if (heir)
		r = broker->heir_fd = fifo_create(broker->dir, FIFO_LIVE, heir);
	if (r < 0)
		why_set(why, "cannot make a FIFO in '%s/" FIFO_LIVE "': %s",
			broker->dir->path, strerror(-r));
	else
		r = write_lease(broker, why);
	if (heir && r != 0) {
		close_fd(&broker->heir_fd);
		fifo_remove(broker->dir, FIFO_LIVE, heir->token);
	}
	return r;
}

/*
 * With the lease files locked: reads and plans once more, and writes the lease if nothing has
 * changed.  BROKER_GRANTED, BROKER_AGAIN, BROKER_CANCELLED, BROKER_HOPELESS, or a negative errno.
 */
static int take_locked(struct broker *broker, struct why *why)
{
	struct gpuset set = broker->result.verdict.gpus;
	struct verdict again;
	int r = read_and_plan(broker, &again, why);

	if (r != 0)
		return r;
	/*
	 * What may have happened since the first plan: another process has taken the GPUs; a file
	 * was replaced before it was locked; or a lease has ended, so that the probe is too old
	 * for its GPU, or this process has not looked yet for leftover processes of the lease.
	 */
	if (again.kind != VERDICT_START || !gpuset_equals(&again.gpus, &set) ||
		!commit_is_locked(&broker->view, &set) ||
		!broker_is_probe_fresh(broker, &set) ||
		snapshot_wants_look(&broker->view, &set))
		return BROKER_AGAIN;
	return broker_write_lease(broker, why);
}

/* Locks the lease files of the verdict's GPUs and takes them.  Returns as take_locked(). */
static int lock_and_take(struct broker *broker, struct why *why)
{
	int r = commit_lock(&broker->view, &broker->result.verdict.gpus);

	/* the view notes the locked GPUs, so the next plan starts the ticket on others or waits */
	if (r == COMMIT_LOCKED)
		return BROKER_AGAIN;
	if (r == -EBADF) {
		/* a file is missing: the next broker_look() makes it */
		broker->state.adopted_ms = 0;
		return BROKER_AGAIN;
	}
	if (r < 0)
		return r;
	r = take_locked(broker, why);
	commit_unlock(&broker->view);
	if (r == BROKER_GRANTED)
		broker_finish(broker);
	return r;
}

/*
 * Takes the GPUs of the verdict.  Returns as take_locked(), or BROKER_LOCKED: another singleton of
 * this user and name is taking GPUs, perhaps in a stopped process.
 *
 * The lease files of two singletons may differ.  Without a common lock, each of them could read
 * before the other writes its lease: the later one goes first when the earlier one has just got
 * its priority, or when the job that it waited for has just ended.
 */
static int take_gpus(struct broker *broker, struct why *why)
{
	const struct request *request = &broker->ticket.request;
	uint32_t uid = broker->ticket.owner.uid;
	int r;

	if (!request->is_singleton)
		return lock_and_take(broker, why);
	/* an error means that the file system has no such locks */
	r = ticket_lock_name(&broker->queue.file, uid, request->name,
		clock_boot_ms() + SINGLETON_LOCK_MS);
	if (r == TICKET_LOCKED)
		return BROKER_LOCKED;
	r = lock_and_take(broker, why);
	ticket_unlock_name(&broker->queue.file, uid, request->name);
	return r;
}

/* --- turns ---------------------------------------------------------------------- */

/* Notes this turn in the ticket; otherwise other waiters would pass the ticket over. */
static int end_turn(struct broker *broker, bool is_spinning)
{
	struct gpuset *told = &broker->state.told;
	struct gpuset left = gpuset_minus(told, &broker->ticket.request.allow);
	int r;

	broker_tell_stuck(broker, is_spinning);
	broker->ticket.turn++;
	broker->ticket.turn_ms = clock_boot_ms();
	r = ticket_rewrite(&broker->queue.file, broker->number, &broker->ticket);
	*told = broker->ticket.request.allow;
	/* later waiters have no other sign that this ticket no longer keeps those GPUs */
	if (r == 0 && !gpuset_is_empty(&left))
		broker_ring_behind(broker);
	return r;
}

/*
 * With VERDICT_START: takes the GPUs if the probe is fresh, and otherwise starts a probe.
 * BROKER_GRANTED, BROKER_PROBING, or as take_gpus().
 */
static int try_to_start(struct broker *broker, struct why *why)
{
	bool is_fresh = broker_is_probe_fresh(broker, &broker->result.verdict.gpus);
	int r;

	if (!is_fresh)
		prober_want(&broker->prober, broker->state.now_ms);
	/* before the locks are taken; a probe that was started runs meanwhile, and takes longer */
	r = commit_look(&broker->view, &broker->result.verdict.gpus);
	if (r != 0)
		return r < 0 ? r : BROKER_AGAIN;
	if (is_fresh && !broker_wants_links(broker))
		return take_gpus(broker, why);
	return BROKER_PROBING;
}

/*
 * With another verdict: does what can make room for the ticket, and sets ->state.wake_ms.
 * BROKER_WAITING; BROKER_PROBING; BROKER_AGAIN: something has changed; or a negative errno.
 */
static int prepare_to_wait(struct broker *broker)
{
	int64_t wake_ms;
	bool could_start, looks_ahead;
	int r;

	/*
	 * A record may name a leftover process that cannot be judged from here.  No event tells
	 * when it ends, so look through all processes; the set is empty, so only for such leases.
	 */
	if (broker->view.is_any_unclear) {
		r = commit_look(&broker->view, &GPUSET_NONE);
		if (r != 0)
			return r < 0 ? r : BROKER_AGAIN;
	}

	/* once jobs were asked to end, the plan counts on their end: plan again */
	could_start = broker_could_start(broker);
	r = broker_preempt(broker, &could_start);
	if (r != 0)
		return r < 0 ? r : r == BROKER_ASKED ? BROKER_AGAIN : BROKER_PROBING;

	/*
	 * Only a few waiters look after the tickets ahead: first for owners that take no turns,
	 * then for owners that take turns and do not start.
	 */
	r = broker_looks_ahead(broker, could_start);
	if (r < 0)
		return r;
	looks_ahead = r == BROKER_LOOKS_AHEAD;
	r = passover_consider(&broker->passover, &broker->queue, broker_place(broker),
		looks_ahead, broker->state.now_ms, &wake_ms);
	if (r != 0)
		return r == PASSOVER_CHANGED ? BROKER_AGAIN : r;
	broker->state.wake_ms = min_i64(broker->state.wake_ms, wake_ms);
	r = broker_pass_stuck(broker, looks_ahead);
	if (r != 0)
		return r;

	/* last: leases that linger, and timers for changes that raise no event */
	if (commit_end_lingering(&broker->view))
		return BROKER_AGAIN;
	broker->state.wake_ms = min_i64(broker->state.wake_ms, broker->book.look.wake_ms);
	broker_set_alarm(broker);
	return prober_is_busy(&broker->prober) ? BROKER_PROBING : BROKER_WAITING;
}

/* One try of a turn.  BROKER_AGAIN: the state has changed meanwhile; or as broker_turn(). */
static int turn_once(struct broker *broker, struct why *why)
{
	int r = read_and_plan(broker, &broker->result.verdict, why);
	enum verdict_kind kind;

	/* a window may open or close GPUs to a ticket, which raises no event */
	broker->state.wake_ms = r == 0 ? broker->plan.changes_ms : INT64_MAX;
	if (r != 0)
		return r;
	r = broker_begin(broker);
	if (r != 0)
		return r;
	r = commit_mend(&broker->view);
	if (r == COMMIT_READ) /* the verdict rests on what was read before */
		r = read_and_plan(broker, &broker->result.verdict, why);
	if (r != 0)
		return r == COMMIT_MENDED ? BROKER_AGAIN : r;
	kind = broker->result.verdict.kind;
	broker->state.waits = broker->state.waits || broker_competes(broker, kind);
	if (kind != VERDICT_HELD && broker_is_share_due(broker))
		return BROKER_AGAIN;
	return kind == VERDICT_START ? try_to_start(broker, why)
				     : prepare_to_wait(broker);
}

/*
 * Ends a turn in which the lease of the previous attempt could not be given back: the job takes no
 * GPUs before that.  The verdict names one of the GPUs as locked.
 */
static int wait_for_lock(struct broker *broker)
{
	int slot = gpuset_next(&broker->state.debt.gpus, 0), r;

	broker->state.wake_ms = clock_boot_ms() + LOCKED_MS;
	broker->result.verdict = (struct verdict){ .kind = VERDICT_GPU,
		.wanted = broker->ticket.request.gpus,
		.need = request_need(&broker->ticket.request),
		.state = GPU_LOCKED,
		.slot = slot < 0 ? 0 : (uint32_t)slot };
	r = end_turn(broker, false);
	return r < 0 ? r : BROKER_WAITING;
}

/* The whole turn.  A broker_outcome, or a negative errno, perhaps with the reason in @why. */
static int take_turn(struct broker *broker, struct why *why)
{
	int r = BROKER_AGAIN, ended;
	bool is_spinning;

	if (broker_give_back(broker) != 0)
		return wait_for_lock(broker);
	for (int i = 0; i < TURN_TRIES && r == BROKER_AGAIN; i++)
		r = turn_once(broker, why);
	/* other waiters learn from the ticket that its owner takes turns but comes to no end */
	is_spinning = r == BROKER_AGAIN || r == BROKER_LOCKED;
	if (is_spinning) {
		broker->state.wake_ms =
			clock_boot_ms() + (r == BROKER_LOCKED ? LOCKED_MS : AGAIN_MS);
		r = BROKER_WAITING;
	}
	if (r != BROKER_WAITING && r != BROKER_PROBING)
		return r;
	ended = end_turn(broker, is_spinning);
	return ended < 0 ? ended : r;
}

int broker_turn(struct broker *broker)
{
	struct why why = WHY_NONE;
	int r;

	broker->result.has_rejoined = false;
	broker->result.trouble.text[0] = '\0';
	broker->state.trouble = 0;
	if (broker->state.is_damaged)
		broker_mend(broker);
	bell_drain(broker->bell_fd); /* before reading, never after: a ring is not lost */
	r = take_turn(broker, &why);
	if (r >= 0) {
		broker->state.pause_ms = 0;
		return r;
	}
	if (!why.text[0])
		why_set(&why, "cannot take a turn in the queue: %s", strerror(-r));
	broker->result.trouble = why;
	broker->state.trouble = -r;
	broker->state.wake_ms = broker_let_go(broker, r);
	/* others learn that this owner lives and cannot act, if at least that can be written */
	(void)!end_turn(broker, false);
	return BROKER_TROUBLED;
}

/* How many new probes broker_looks_again() waits for. */
enum { LOOKS_MOST = 2 };

bool broker_looks_again(struct broker *broker, int outcome)
{
	const struct snapshot *view = &broker->view;
	bool is_new = view->has_probe &&
		      view->probe.started_ms >= broker->ticket.since_ms &&
		      view->probe.started_ms != broker->state.looked_ms;

	if (outcome != BROKER_PROBING &&
		(outcome != BROKER_WAITING || !is_any_outdated(view)))
		return false;
	if (is_new) {
		broker->state.looked_ms = view->probe.started_ms;
		broker->state.looks++;
	}
	if (broker->state.looks >= LOOKS_MOST)
		return false;
	if (outcome == BROKER_WAITING)
		prober_want(&broker->prober, broker->state.now_ms);
	return true;
}

/*
 * Whether a watchdog or supervisor holds the live FIFO of the job until it has looked for leftover
 * processes of the job.
 */
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

		/* ->left: the look is done and has found a process, which may live for long */
		if (seen->is_dead && !seen->is_over && !seen->lease.left[0] &&
			has_witness(&seen->lease) && !gpuset_is_empty(&wanted) &&
			broker->state.now_ms < seen->dead_ms + WITNESS_MS)
			ret = min_i64(ret, seen->dead_ms + WITNESS_MS);
	}
	return ret;
}
