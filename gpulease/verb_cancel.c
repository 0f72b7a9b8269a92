/*
 * --cancel: a waiting ticket leaves the queue, a running job is ended.
 *
 * The wish is appended to the ticket file first, from when on it counts for everybody: it names
 * the job, so that no attempt of it starts any more.  Then all who wait are told by their bells.
 * Who does not obey within a second, and who runs already, is ended by signals, until its lease
 * is over.  A supervisor ends its command itself; what is left at the end of the grace is killed,
 * and the supervisor a moment later.  A shell goes on: what it has started on its GPUs is ended,
 * and they are given back in its name.
 *
 * Called from within what is to end, this process is part of it, and those that have called it
 * wait for it.  In a shell's lease they are spared.  Those of a job are ended with it, or it and
 * they would wait for each other; what this process has inherited of the job it lets go of.
 */
#include <errno.h>
#include <signal.h>

#include "aim.h"
#include "cancel_record.h"
#include "clock.h"
#include "commit.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "kin.h"
#include "operands.h"
#include "outcome.h"
#include "state.h"
#include "step.h"
#include "terminate.h"
#include "verbs.h"

enum {
	TARGETS_MAX = 1024,
	OBEY_MS = 1000,
	STAY_MS = 5000,
	SUPERVISOR_MS = 2000, /* from the KILL of its command to its own */
	AGAIN_MS = 20,        /* whose end does not wake us is looked at so often */
	ROUND_MS = 50,        /* what a shell has started is looked for so often */
};

#define FOREVER_MS (INT64_MAX / 4)

struct target {
	uint64_t job, number; /* the second is that of the job's latest ticket: */
	struct ticket ticket;
	struct termination termination;
	struct command runs; /* the command of its owner, if that is a supervisor */
	struct gpuset gpus;
	bool was_waiting, is_shell, is_done;
	int64_t killed_ms; /* all but the supervisor; 0: not yet */
	int status;
};

static struct {
	struct context context;
	struct queue queue;
	struct snapshot view;
	struct outcome_look look;
	struct target targets[TARGETS_MAX];
	size_t count;
	int64_t begun_ms;
} cancel;

/* --- what is meant ----------------------------------------------------------------- */

static int refuse(uint64_t job, const char *because)
{
	diag("ticket %llu %s", (unsigned long long)job, because);
	return EXIT_NOT_DONE;
}

/* Reads whom there is to end, by the lease where there is one.  1: the job is over; -errno. */
static int locate(struct target *target)
{
	struct outcome job = OUTCOME_OF(target->job);
	const struct lease *lease;
	struct ticket ticket;
	int r;

	outcome_begin(&cancel.look, &cancel.queue, &cancel.view, clock_boot_ms());
	r = outcome_judge(&job, &cancel.look, false);
	if (r == 0 && (!job.has_owner || ticket_read(&cancel.queue.file, job.latest,
						 &ticket) != TICKET_RECORD))
		r = -EAGAIN; /* half rewritten, or damaged */
	if (r != 0)
		return r;
	lease = outcome_find_lease(&cancel.view, job.job);
	target->job = job.job;
	target->number = job.latest;
	target->ticket = ticket;
	target->termination.owner = lease ? lease->owner : ticket.owner;
	target->runs = lease ? lease->runs : ticket.runs;
	target->gpus = lease ? lease->gpus : GPUSET_NONE;
	target->is_shell = lease && lease->is_shell;
	target->termination.is_supervised = ticket.request.is_supervised;
	target->was_waiting = !lease && ticket.state == TICKET_WAITING;
	return 0;
}

/* Checks that the job itself may be signalled; a shell never is.  0 or an exit status. */
static int check_aim(const struct target *target)
{
	const struct owner *owner = &target->termination.owner;
	struct owner command = owner_as_command(owner, &target->runs);
	uint64_t pidns = cancel.context.dir.pidns;
	int r = 0;

	if (target->is_shell)
		return 0;
	if (owner_judge(owner, pidns, NULL) == OWNER_ALIVE)
		r = aim_check(&cancel.context, "ticket", target->job, owner, owner->pid);
	else if (command.pid && owner_judge(&command, pidns, NULL) == OWNER_ALIVE)
		r = aim_check(&cancel.context, "ticket", target->job, owner, command.pid);
	return r;
}

static int add_target(const struct settings *settings, uint64_t id)
{
	struct target *target = &cancel.targets[cancel.count];
	uint64_t job;
	int r = outcome_find_job(&cancel.queue.file, cancel.queue.end, id, &job);

	if (r == OUTCOME_NO_JOB)
		return refuse(id, "does not exist");
	if (r < 0 || cancel.count == TARGETS_MAX)
		return refuse(id, r < 0 ? strerror(-r) : "is one too many at once");
	*target = (struct target){ .job = job,
		.termination = {
			.grace_ms = settings->grace_ms, .is_forced = settings->force } };
	r = locate(target);
	if (r != 0)
		return refuse(id, r < 0 ? strerror(-r) : "has finished");
	/* its supervisor keeps the grace that the job was given */
	if (target->termination.is_supervised && !settings->grace_given)
		target->termination.grace_ms = max_i64(
			target->termination.grace_ms, target->ticket.request.grace_ms);
	if (getuid() != 0 && getuid() != target->termination.owner.uid) {
		char name[64];
		struct text text = TEXT_ON(name);

		describe_user(target->termination.owner.uid, target->ticket.user, &text);
		diag("ticket %llu belongs to %s; only they and root may cancel it",
			(unsigned long long)id, name);
		return EXIT_NOT_DONE;
	}
	r = check_aim(target);
	if (r == 0)
		cancel.count++;
	return r;
}

/* All ids that can be cancelled are; the status is that of the worst. */
static int read_operands(const struct settings *settings)
{
	struct operand_walk walk =
		OPERAND_WALK(settings->operands, settings->operand_count, OPERAND_JOB);
	struct operand operand;
	struct why why;
	int r, status = EXIT_DONE;

	while ((r = operand_next(&walk, &operand, &why)) == 0) {
		r = add_target(settings, operand.first);
		status = r > status ? r : status;
	}
	if (r < 0)
		diag("%s", why.text);
	return r < 0 ? EXIT_MISUSE : status;
}

/* --- telling ----------------------------------------------------------------------- */

static int tell(const struct target *target)
{
	struct control control = {
		.verb = CONTROL_CANCEL,
		.uid = getuid(),
		.ticket = target->job,
		.at_ms = clock_boot_ms(),
	};
	int r;

	text_copy(control.boot, sizeof(control.boot), cancel.context.dir.boot);
	r = ticket_append_control(&cancel.queue.file, &control);
	if (r < 0)
		diag("cannot cancel ticket %llu: %s", (unsigned long long)target->job,
			strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/* Who got its GPUs, or went back into the queue, before the wish was there for it to see. */
static void look_again(void)
{
	if (snapshot_read(&cancel.view, clock_boot_ms()) < 0)
		return;
	for (size_t i = 0; i < cancel.count; i++) {
		struct target *target = &cancel.targets[i];
		uint32_t before = target->termination.owner.pid, ran = target->runs.pid;

		if (locate(target) != 0 || (target->termination.owner.pid == before &&
						   target->runs.pid == ran))
			continue;
		target->status = check_aim(target);
		target->is_done = target->status != 0;
	}
}

/* --- ending ------------------------------------------------------------------------ */

/* Tells the history, as far as the job's own end does not. */
static void record(const struct target *target)
{
	cancel_record(&(struct cancelled){ .queue = &cancel.queue,
		.view = &cancel.view,
		.job = target->job,
		.number = target->number,
		.ticket = &target->ticket,
		.termination = &target->termination,
		.is_killed = target->killed_ms != 0 });
}

static void fail(struct target *target, const char *because)
{
	target->is_done = true;
	target->status = refuse(target->job, because);
}

/* In the name of the shell that owns the lease; returns whether that could be done. */
static bool give_back(const struct target *target)
{
	int r = commit_release(
		&cancel.view, target->termination.owner.token, &target->gpus, NULL);

	if (r == COMMIT_LOCKED)
		return false;
	beacon_ring_all(&cancel.context.dir);
	return true;
}

/* What a shell has started: TERM, after the grace KILL; then its GPUs are given back. */
static int64_t end_of_shell(struct target *target, int64_t now_ms)
{
	struct termination *end = &target->termination;
	bool is_late = end->begun_ms && now_ms >= end->begun_ms + end->grace_ms;
	int signal = is_late ? SIGKILL : end->begun_ms ? 0 : SIGTERM;
	unsigned left;

	if (end->owner.pidns != cancel.context.dir.pidns) {
		fail(target, "is of a shell in another pid namespace; cancel it there");
		return now_ms;
	}
	if (!end->begun_ms)
		end->begun_ms = now_ms;
	left = kin_signal(end->owner.token, end->owner.uid, signal, end->owner.pid,
		KIN_BUT_CALLERS);
	if (!left && give_back(target)) {
		target->is_done = true;
		record(target);
	}
	return now_ms + ROUND_MS;
}

/* Likewise, once; the supervisor sees it end and tells how. */
static void kill_command(struct target *target, int64_t now_ms)
{
	const struct owner *owner = &target->termination.owner;

	target->killed_ms = now_ms;
	if (owner->pidns == cancel.context.dir.pidns)
		(void)kin_signal_all(owner->token, owner->uid, SIGKILL, owner->pid);
}

/* They wait for this process, which waits for the job; its owner was told. */
static void end_callers(const struct owner *owner)
{
	if (owner->pidns == cancel.context.dir.pidns)
		(void)kin_signal(
			owner->token, owner->uid, SIGTERM, owner->pid, KIN_CALLERS);
}

static int64_t stay_until_ms(const struct target *target)
{
	return cancel.begun_ms + target->termination.grace_ms + STAY_MS;
}

/* How long it is given: a supervisor has its time from when its command was killed on. */
static int64_t whole_grace_ms(const struct target *target)
{
	const struct termination *end = &target->termination;

	if (!end->is_supervised)
		return end->grace_ms;
	return target->killed_ms ? target->killed_ms - end->begun_ms + SUPERVISOR_MS
				 : FOREVER_MS;
}

/* Signals where it is time to.  As terminate_step(). */
static int signal_target(
	struct target *target, struct life *life, int64_t now_ms, int64_t *ret_wake_ms)
{
	struct termination *end = &target->termination;
	int64_t grace_ms = end->grace_ms;
	bool is_first = !end->begun_ms;
	int r;

	end->grace_ms = whole_grace_ms(target);
	r = terminate_step(end, life, cancel.context.dir.pidns, now_ms, ret_wake_ms);
	end->grace_ms = grace_ms;
	if (is_first && (!end->is_supervised || life->is_orphaned))
		end_callers(&end->owner);
	if (!end->is_supervised || target->killed_ms)
		return r;
	if (now_ms >= end->begun_ms + end->grace_ms)
		kill_command(target, now_ms);
	*ret_wake_ms =
		min_i64(*ret_wake_ms, target->killed_ms ? now_ms + SUPERVISOR_MS
							: end->begun_ms + end->grace_ms);
	return r;
}

/* Goes on with one target; returns when to come back at the latest. */
static int64_t go_on(struct target *target, struct life *life, int64_t now_ms)
{
	int64_t wake_ms = cancel.begun_ms + OBEY_MS;
	int r = TERMINATE_LATER;

	if (life_wants_look(life)) {
		/* processes of the job that hold no FIFO have to end, too */
		(void)!snapshot_read_and_look(&cancel.view, now_ms);
		life = lives_find(&cancel.view.lives, target->termination.owner.token);
	}
	if (!life || life_is_over(life)) {
		target->is_done = true;
		record(target);
		return now_ms;
	}
	if (target->is_shell)
		wake_ms = end_of_shell(target, now_ms);
	else if (!target->was_waiting || now_ms >= wake_ms)
		r = signal_target(target, life, now_ms, &wake_ms);
	if (target->is_done)
		return now_ms;
	if (r == -ENOTSUP && target->was_waiting)
		target->is_done = true; /* nobody counts its ticket any more */
	else if (r == -ENOTSUP)
		fail(target, "runs in another pid namespace; cancel it from there");
	else if (r < 0)
		fail(target, strerror(-r));
	else if (now_ms >= stay_until_ms(target))
		fail(target, "has not ended yet; what is left of it cannot be killed");
	return min_i64(wake_ms, stay_until_ms(target));
}

static struct life *judge(const struct target *target, int64_t now_ms)
{
	return lives_judge_job(
		&cancel.view.lives, &target->termination.owner, &target->runs, now_ms);
}

/* Whether its end will wake us. */
static bool watch_life(struct watch *watch, const struct target *target, int64_t now_ms)
{
	const struct life *life = judge(target, now_ms);

	return life && !life_is_over(life) && !life->unwatchable_ms &&
	       life_watch(life, watch) == 0;
}

/* One round over all targets that are left; false once none is. */
static bool round_of_all(struct watch *watch)
{
	int64_t now_ms = clock_boot_ms();
	bool is_left = false;

	watch_begin(watch);
	for (size_t i = 0; i < cancel.count; i++) {
		struct target *target = &cancel.targets[i];
		struct life *life;

		if (target->is_done)
			continue;
		life = judge(target, now_ms);
		if (!life) {
			fail(target, strerror(ENOMEM));
			continue;
		}
		watch_until(watch, go_on(target, life, now_ms));
		if (target->is_done)
			continue;
		is_left = true;
		if (!watch_life(watch, target, now_ms))
			watch_until(watch, now_ms + AGAIN_MS);
	}
	return is_left;
}

static int end_all(void)
{
	struct watch watch = WATCH_NONE;
	int status = EXIT_DONE;

	cancel.begun_ms = clock_boot_ms();
	while (round_of_all(&watch))
		if (watch_wait(&watch) < 0)
			break;
	watch_release(&watch);
	for (size_t i = 0; i < cancel.count; i++)
		if (cancel.targets[i].status > status)
			status = cancel.targets[i].status;
	return status;
}

/*
 * Makes this process no part of the job, which may cancel itself: this process goes on until the
 * job is over, so it must not keep the job's lease.
 */
static void leave(const char *token)
{
	beacon_let_go(&cancel.context.dir, token);
	if (kin_carries_token((uint32_t)getpid(), token))
		step_leave();
}

int verb_cancel(struct settings *settings)
{
	int r = state_open(settings, false, &cancel.context, &cancel.queue, &cancel.view);
	int status;

	if (r != 0)
		return r;
	status = read_operands(settings);
	for (size_t i = 0; i < cancel.count; i++) {
		leave(cancel.targets[i].termination.owner.token);
		r = tell(&cancel.targets[i]);
		status = r > status ? r : status;
	}
	look_again();
	beacon_ring_all(&cancel.context.dir); /* also waiters behind the cancelled jobs */
	r = end_all();
	return r > status ? r : status;
}
