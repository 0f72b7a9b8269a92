#include <errno.h>
#include <signal.h>

#include "array.h"
#include "bell.h"
#include "namespaces.h"
#include "signal_permission.h"
#include "cancel.h"
#include "cancel_choice.h"
#include "cancel_confirm.h"
#include "cancel_record.h"
#include "clock.h"
#include "commit.h"
#include "diag.h"
#include "exitcodes.h"
#include "privacy.h"
#include "live_fifo.h"
#include "process_lease.h"
#include "operands.h"
#include "outcome.h"
#include "shared_state.h"
#include "slurm_program.h"
#include "job_step.h"
#include "terminate.h"

enum {
	OBEY_MS = 1000, /* for a waiting job to leave the queue by itself */
	STAY_MS =
		5000, /* a process that lives so long after the grace cannot be killed */
	SUPERVISOR_MS = 2000, /* from the KILL of its command to its own */
	AGAIN_MS = 20,        /* between checks of a job, if its end raises no event */
	ROUND_MS = 50, /* between searches for processes that a shell has started */
};

#define FOREVER_MS (INT64_MAX / 4)

/* One job to end. */
struct target {
	uint64_t job;
	uint64_t number;      /* of the job's latest ticket */
	struct ticket ticket; /* that ticket */
	struct termination termination;
	struct command runs; /* the command of its owner, if the owner is a supervisor */
	struct gpuset gpus;
	bool is_chosen; /* by a word or a range, not by its id */
	bool was_waiting, is_shell, is_done;
	int64_t killed_ms; /* when all but the supervisor got KILL; 0: not yet */
	int status;        /* exit status for this job */
};

static struct {
	struct context context;
	struct queue queue;
	struct snapshot view;
	struct outcome_look look;
	struct target *targets;
	size_t count, room;
	size_t chosen; /* how many of them are ->is_chosen */
	int64_t begun_ms;
} cancel;

/* --- which jobs -------------------------------------------------------------------- */

/* Prints why the job cannot be cancelled. */
static int refuse_job(uint64_t job, const char *because)
{
	diag("job %llu %s", (unsigned long long)job, because);
	return EXIT_NOT_DONE;
}

/*
 * Reads which process owns the job: as its lease says, or, without a lease, its latest ticket.
 * Returns 0, a positive value if the job is over, or a negative errno.
 */
static int target_locate(struct target *target)
{
	struct outcome job = OUTCOME_OF(target->job);
	const struct lease *lease;
	struct ticket ticket;
	int r;

	outcome_begin(&cancel.look, &cancel.queue, &cancel.view, clock_boot_ms());
	r = outcome_judge(&job, &cancel.look, false);
	if (r == 0 && (!job.has_owner || ticket_read(&cancel.queue.file, job.latest,
						 &ticket) != TICKET_RECORD))
		r = -EAGAIN; /* the ticket is just being rewritten, or damaged */
	if (r != 0)
		return r;
	lease = outcome_find_lease(&cancel.view, job.job);
	target->job = job.job;
	target->number = job.latest;
	target->ticket = ticket;
	/* before the job has ended, and the name can be read no more */
	(void)job_name_complete(&cancel.context.dir, ticket.owner.token,
		ticket.request.name_hash, target->ticket.request.name);
	target->termination.owner = lease ? lease->owner : ticket.owner;
	target->runs = lease ? lease->runs : ticket.runs;
	target->gpus = lease ? lease->gpus : GPUSET_NONE;
	target->is_shell = lease && lease->is_shell;
	target->termination.is_supervised = ticket.request.is_supervised;
	target->was_waiting = !lease && ticket.state == TICKET_WAITING;
	return 0;
}

/*
 * Checks that the job's owner, or the command of a dead supervisor, may be signalled.  A shell
 * never gets a signal.  Returns 0 or an exit status, after it has printed the reason.
 */
static int target_check_permission(const struct target *target)
{
	const struct owner *owner = &target->termination.owner;
	struct owner command = owner_as_command(owner, &target->runs);
	uint64_t pidns = cancel.context.dir.pidns;
	int r = 0;

	if (target->is_shell)
		return 0;
	if (owner_judge(owner, pidns, NULL) == OWNER_ALIVE)
		r = signal_permission_check(
			&cancel.context, "ticket", target->job, owner, owner->pid);
	else if (command.pid && owner_judge(&command, pidns, NULL) == OWNER_ALIVE)
		r = signal_permission_check(
			&cancel.context, "ticket", target->job, owner, command.pid);
	return r;
}

/* Returns the target for job @job, perhaps a new one; NULL without memory. */
static struct target *target_find(uint64_t job)
{
	struct target *targets;

	for (size_t i = 0; i < cancel.count; i++)
		if (cancel.targets[i].job == job)
			return &cancel.targets[i];
	targets =
		array_grow(cancel.targets, sizeof(*targets), cancel.count, &cancel.room);
	if (!targets)
		return NULL;
	cancel.targets = targets;
	targets[cancel.count] = (struct target){ .job = job };
	return &targets[cancel.count];
}

/*
 * Returns true if the user is root or owns the job; otherwise prints that only they may cancel it.
 */
static bool target_check_user(const struct target *target, uint64_t id)
{
	uint32_t uid = target->termination.owner.uid;
	char name[64];
	struct text text = TEXT_ON(name);

	if (getuid() == 0 || namespaces_own_user() == uid)
		return true;
	describe_user(uid, target->ticket.user, &text);
	diag("job %llu belongs to %s; only they and root may cancel it",
		(unsigned long long)id, name);
	return false;
}

/*
 * Adds job @job, which the user has named @id.  If a word or a range has chosen the job, it is no
 * error if the job has ended meanwhile.  Returns 0 or an exit status.
 */
static int target_add(
	const struct settings *settings, uint64_t job, uint64_t id, bool is_chosen)
{
	struct target *target = target_find(job);
	int r;

	if (!target)
		return refuse_job(job, strerror(ENOMEM));
	if (target < cancel.targets + cancel.count)
		return 0;
	target->is_chosen = is_chosen;
	target->termination.grace_ms = settings->care.grace_ms;
	target->termination.is_forced = settings->verb.force;
	r = target_locate(target);
	if (r > 0 && is_chosen)
		return 0;
	if (r != 0)
		return refuse_job(id, r < 0 ? strerror(-r) : "has finished");
	/* the supervisor uses the job's own grace, so KILL must not come earlier from here */
	if (target->termination.is_supervised && !settings->care.grace_given)
		target->termination.grace_ms = max_i64(
			target->termination.grace_ms, target->ticket.request.grace_ms);
	if (!target_check_user(target, id))
		return EXIT_NOT_DONE;
	r = target_check_permission(target);
	if (r == 0) {
		cancel.count++;
		cancel.chosen += target->is_chosen;
	}
	return r;
}

/* Adds the job with the id or ticket number @id.  Returns 0 or an exit status. */
static int target_add_number(const struct settings *settings, uint64_t id)
{
	uint64_t job;
	struct why why;
	int r = outcome_find_job(&cancel.queue.file, cancel.queue.end, id, &job);

	if (r == 0)
		return target_add(settings, job, id, false);
	if (r < 0)
		return refuse_job(id, strerror(-r));
	outcome_explain_no_job(id, &why);
	diag("%s", why.text);
	return EXIT_NOT_DONE;
}

/* The jobs that an operand chooses. */
struct choosing {
	const struct settings *settings;
	struct cancel_choice choice;
	bool has_found;
	uint64_t doubtful; /* the last job that it doubts */
	int status;
};

/* Says once that the choice may mean @job, which it does not include. */
static void report_doubt(struct choosing *choosing, uint64_t job)
{
	struct why why;

	choosing->has_found = true;
	choosing->status = choosing->status ? choosing->status : EXIT_NOT_DONE;
	if (choosing->doubtful == job)
		return;
	choosing->doubtful = job;
	cancel_choice_explain_doubt(&choosing->choice, job, &why);
	diag("%s", why.text);
}

static int target_add_chosen(void *arg, const struct live_job *job)
{
	struct choosing *choosing = arg;
	int r;

	if (cancel_choice_doubts(&choosing->choice, job))
		report_doubt(choosing, job->id);
	if (!cancel_choice_admits(&choosing->choice, job))
		return 0;
	choosing->has_found = true;
	r = target_add(choosing->settings, job->id, job->id, true);
	choosing->status = r > choosing->status ? r : choosing->status;
	return 0;
}

/* Adds the jobs that @operand chooses.  Returns 0 or an exit status. */
static int targets_add_choice(
	const struct settings *settings, const struct operand *operand)
{
	struct choosing choosing = { .settings = settings,
		.choice = cancel_choice_of(operand, namespaces_own_user()) };
	struct why why;
	int r = live_jobs_each(&cancel.queue, &cancel.view, target_add_chosen, &choosing);

	if (r != 0)
		return shared_state_report(&cancel.context, r);
	if (choosing.has_found)
		return choosing.status;
	slurm_program_ask(choosing.choice.name);
	cancel_choice_explain_none(&choosing.choice, &why);
	diag("%s", why.text);
	return EXIT_NOT_DONE;
}

/* Adds every job that can be cancelled.  Returns the worst exit status. */
static int read_operands(const struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(
		settings->verb.operands, settings->verb.operand_count, OPERAND_JOBS);
	struct operand operand;
	struct why why;
	int r, status = EXIT_DONE;

	while ((r = operand_next(&walk, &operand, &why)) == 0) {
		r = operand.word || operand.first != operand.last
			    ? targets_add_choice(settings, &operand)
			    : target_add_number(settings, operand.first);
		status = r > status ? r : status;
	}
	if (r < 0)
		diag("%s", why.text);
	return r < 0 ? EXIT_MISUSE : status;
}

/*
 * Asks the user if several jobs would end that the user has not named by their ids.  Returns
 * whether to continue.
 */
static bool targets_confirm(const struct settings *settings)
{
	char bytes[200], name[64];
	struct text jobs = TEXT_ON(bytes);

	if (settings->verb.yes || cancel.chosen < 2)
		return true;
	for (size_t i = 0; i < cancel.count; i++) {
		const struct target *target = &cancel.targets[i];
		const struct request *request = &target->ticket.request;
		struct text user = TEXT_ON(name);

		text_addf(&jobs, "%s%llu%s%s", i ? ", " : "",
			(unsigned long long)target->job, *request->name ? " " : "",
			request->name);
		if (!job_name_is_whole(request->name, request->name_hash))
			text_add(&jobs, "…");
		if (target->termination.owner.uid == namespaces_own_user())
			continue;
		describe_user(target->termination.owner.uid, target->ticket.user, &user);
		text_addf(&jobs, " of %s", name);
	}
	return cancel_confirm(cancel.count, &jobs);
}

/* --- requesting -------------------------------------------------------------------- */

/* Appends the cancel request to the ticket file.  Returns 0 or an exit status. */
static int target_request(const struct target *target)
{
	int r = queue_ask(&cancel.queue,
		&(struct control){ .verb = CONTROL_CANCEL, .ticket = target->job },
		target->number);

	if (r < 0)
		diag("cannot cancel job %llu: %s", (unsigned long long)target->job,
			strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/*
 * Reads the targets again: before the request was in the file, a waiting job may have got its GPUs,
 * or a running one may have gone back into the queue, with another owner or command than was read.
 * From the request on neither can happen any more.
 */
static void targets_locate_again(void)
{
	if (snapshot_read(&cancel.view, clock_boot_ms()) < 0)
		return;
	for (size_t i = 0; i < cancel.count; i++) {
		struct target *target = &cancel.targets[i];
		uint32_t before = target->termination.owner.pid, ran = target->runs.pid;

		if (target_locate(target) != 0 ||
			(target->termination.owner.pid == before &&
				target->runs.pid == ran))
			continue;
		target->status = target_check_permission(target);
		target->is_done = target->status != 0;
	}
}

/* --- ending ------------------------------------------------------------------------ */

/* Records the end in the history, as far as the job has not done that itself. */
static void target_record(const struct target *target)
{
	cancel_record(&(struct cancelled){ .queue = &cancel.queue,
		.view = &cancel.view,
		.job = target->job,
		.number = target->number,
		.ticket = &target->ticket,
		.termination = &target->termination,
		.is_killed = target->killed_ms != 0 });
}

static void target_fail(struct target *target, const char *because)
{
	target->is_done = true;
	target->status = refuse_job(target->job, because);
}

/*
 * Gives back the lease in the name of the shell that owns it.  Returns false if a lease file is
 * locked: then try again.
 */
static bool target_give_back(const struct target *target)
{
	int r = commit_release(
		&cancel.view, target->termination.owner.token, &target->gpus, NULL);

	if (r == COMMIT_LOCKED)
		return false;
	bell_ring_all(&cancel.context.dir);
	return true;
}

/* Notes in the lease who ends it, for one that ends without TERM to its owner. */
static void target_mark(const struct target *target)
{
	(void)!commit_mark_cancelled(&cancel.view, target->termination.owner.token,
		&target->gpus, namespaces_own_user());
	commit_unlock(&cancel.view);
}

/*
 * One round for a shell's lease: signals what the shell has started (TERM, after the grace KILL);
 * once none of that is left, gives the GPUs back.  Returns when the next round is due.
 */
static int64_t shell_end_lease(struct target *target, int64_t now_ms)
{
	struct termination *end = &target->termination;
	bool is_late = end->begun_ms && now_ms >= end->begun_ms + end->grace_ms;
	int signal = is_late ? SIGKILL : end->begun_ms ? 0 : SIGTERM;
	struct owner shell = end->owner;
	autofd int pidfd = -1;
	unsigned left;

	/* the shell itself gets no signal, so its pid in this namespace is needed */
	if (shell.pidns != cancel.context.dir.pidns &&
		owner_seek(&end->owner, &shell, &pidfd) != OWNER_ALIVE)
		shell.pid = 0;
	if (!end->begun_ms) {
		end->begun_ms = now_ms;
		target_mark(target);
	}
	left = process_lease_signal(end->owner.token, end->owner.uid, signal, shell.pid,
		PROCESS_LEASE_BUT_CALLERS);
	if (!left && target_give_back(target)) {
		target->is_done = true;
		target_record(target);
	}
	return now_ms + ROUND_MS;
}

/* Whether the owner is an adopted process that this process cannot find. */
static bool target_is_unseen(const struct target *target, const struct liveness *life)
{
	autofd int pidfd = -1;

	return liveness_is_unseen(life) &&
	       owner_seek(&target->termination.owner, NULL, &pidfd) != OWNER_ALIVE;
}

/*
 * Ends the lease of an owner that cannot be seen from here, only with --force: no process gets a
 * signal, so what uses the GPUs goes on.  Returns when to try again.
 */
static int64_t unseen_end_lease(
	struct target *target, const struct liveness *life, int64_t now_ms)
{
	if (target->termination.is_forced)
		target_mark(target);
	if (!target->termination.is_forced)
		target_fail(target,
			life->fifo == LIVENESS_LIVES
				? "belongs to a process in another pid namespace; cancel it "
				  "there, or give its GPUs back with --force"
				: "belongs to a process of another pid namespace, which may "
				  "have ended; give its GPUs back with --force");
	else if (target_give_back(target)) {
		target->is_done = true;
		target_record(target);
	}
	return now_ms + ROUND_MS;
}

/* Kills all of a supervised job but its supervisor, which then records how the command ended. */
static void supervised_kill_command(struct target *target, int64_t now_ms)
{
	const struct owner *owner = &target->termination.owner;

	target->killed_ms = now_ms;
	if (owner->pidns == cancel.context.dir.pidns)
		(void)process_lease_signal_all(
			owner->token, owner->uid, SIGKILL, owner->pid);
}

/*
 * Sends TERM to the processes of the job that wait for this process, as in a job that cancels
 * itself: this process waits for the job, and the job waits for them.  The owner has got its own
 * signal.
 */
static void end_callers(const struct owner *owner)
{
	if (owner->pidns == cancel.context.dir.pidns)
		(void)process_lease_signal(owner->token, owner->uid, SIGTERM, owner->pid,
			PROCESS_LEASE_CALLERS);
}

/* Returns when to give up: what still lives then cannot be killed. */
static int64_t target_give_up_ms(const struct target *target)
{
	return cancel.begun_ms + target->termination.grace_ms + STAY_MS;
}

/*
 * Returns the time from TERM to KILL for the owner.  A supervisor gets KILL only SUPERVISOR_MS
 * after its command did, so that it can still record the end; until then never.
 */
static int64_t owner_grace_ms(const struct target *target)
{
	const struct termination *end = &target->termination;

	if (!end->is_supervised)
		return end->grace_ms;
	return target->killed_ms ? target->killed_ms - end->begun_ms + SUPERVISOR_MS
				 : FOREVER_MS;
}

/*
 * Sends TERM, and notes in the lease who has ended the job: the process that records the end reads
 * that (commit_mark_cancelled()).  Returns like terminate_step().
 */
static int target_ask_to_end(struct target *target, struct liveness *life, int64_t now_ms,
	int64_t *ret_wake_ms)
{
	struct termination *end = &target->termination;
	int marked = commit_mark_cancelled(
		&cancel.view, end->owner.token, &target->gpus, namespaces_own_user());
	int r = terminate_step(end, life, cancel.context.dir.pidns, now_ms, ret_wake_ms);

	if (marked == 0 && (r < 0 || !end->was_alive))
		commit_unmark_cancelled(&cancel.view, end->owner.token, &target->gpus);
	commit_unlock(&cancel.view);
	return r;
}

/* Sends the signals that are due.  Returns like terminate_step(). */
static int target_signal(struct target *target, struct liveness *life, int64_t now_ms,
	int64_t *ret_wake_ms)
{
	struct termination *end = &target->termination;
	int64_t grace_ms = end->grace_ms;
	bool is_first = !end->begun_ms;
	int r;

	end->grace_ms = owner_grace_ms(target);
	r = is_first ? target_ask_to_end(target, life, now_ms, ret_wake_ms)
		     : terminate_step(
			       end, life, cancel.context.dir.pidns, now_ms, ret_wake_ms);
	end->grace_ms = grace_ms;
	if (is_first && (!end->is_supervised || life->is_orphaned))
		end_callers(&end->owner);
	if (!end->is_supervised || target->killed_ms)
		return r;
	if (now_ms >= end->begun_ms + end->grace_ms)
		supervised_kill_command(target, now_ms);
	*ret_wake_ms =
		min_i64(*ret_wake_ms, target->killed_ms ? now_ms + SUPERVISOR_MS
							: end->begun_ms + end->grace_ms);
	return r;
}

/* Does what is due for one target.  Returns when to call it again at the latest. */
static int64_t target_step(struct target *target, struct liveness *life, int64_t now_ms)
{
	int64_t wake_ms = cancel.begun_ms + OBEY_MS;
	int r = TERMINATE_LATER;

	if (liveness_wants_look(life)) {
		/*
		 * leftovers of the job that do not hold its FIFO have to end, too: search for them
		 */
		(void)!snapshot_read_and_look(&cancel.view, now_ms);
		life = liveness_set_find(
			&cancel.view.lives, target->termination.owner.token);
	}
	if (!life || liveness_is_over(life)) {
		target->is_done = true;
		target_record(target);
		return now_ms;
	}
	if (target_is_unseen(target, life))
		wake_ms = unseen_end_lease(target, life, now_ms);
	else if (target->is_shell)
		wake_ms = shell_end_lease(target, now_ms);
	else if (!target->was_waiting || now_ms >= wake_ms)
		r = target_signal(target, life, now_ms, &wake_ms);
	if (target->is_done)
		return now_ms;
	if (r == -ENOTSUP && target->was_waiting)
		target->is_done =
			true; /* the request alone takes its ticket out of every plan */
	else if (r == -ENOTSUP)
		target_fail(
			target, "runs in another pid namespace; cancel it from there");
	else if (r < 0)
		target_fail(target, strerror(-r));
	else if (now_ms >= target_give_up_ms(target))
		target_fail(target, "has not ended yet: processes of it outlive SIGKILL");
	return min_i64(wake_ms, target_give_up_ms(target));
}

static struct liveness *target_judge(const struct target *target, int64_t now_ms)
{
	return liveness_set_judge_job(
		&cancel.view.lives, &target->termination.owner, &target->runs, now_ms);
}

/* Adds the target's end to @watch.  Returns false if its end raises no event. */
static bool target_watch(struct watch *watch, const struct target *target, int64_t now_ms)
{
	const struct liveness *life = target_judge(target, now_ms);

	return life && !liveness_is_over(life) && !life->unwatchable_ms &&
	       liveness_watch(life, watch) == 0;
}

/* Does what is due for every target that is left.  False once none is. */
static bool targets_step(struct watch *watch)
{
	int64_t now_ms = clock_boot_ms();
	bool is_left = false;

	watch_begin(watch);
	for (size_t i = 0; i < cancel.count; i++) {
		struct target *target = &cancel.targets[i];
		struct liveness *life;

		if (target->is_done)
			continue;
		life = target_judge(target, now_ms);
		if (!life) {
			target_fail(target, strerror(ENOMEM));
			continue;
		}
		watch_until(watch, target_step(target, life, now_ms));
		if (target->is_done)
			continue;
		is_left = true;
		if (!target_watch(watch, target, now_ms))
			watch_until(watch, now_ms + AGAIN_MS);
	}
	return is_left;
}

/* Ends all targets.  Returns the worst exit status. */
static int targets_end(void)
{
	struct watch watch = WATCH_NONE;
	int status = EXIT_DONE;
	size_t done = 0;

	cancel.begun_ms = clock_boot_ms();
	while (targets_step(&watch))
		if (watch_wait(&watch) < 0)
			break;
	watch_release(&watch);
	for (size_t i = 0; i < cancel.count; i++) {
		const struct target *target = &cancel.targets[i];

		done += target->is_chosen && target->status == EXIT_DONE;
		status = target->status > status ? target->status : status;
	}
	if (cancel.chosen)
		note("cancelled %zu job%s", done, done == 1 ? "" : "s");
	return status;
}

/*
 * Makes this process no part of the job, in case the job cancels itself: this process lives until
 * the job is over, so it must not keep the job's lease.
 */
static void leave_job(const char *token)
{
	live_fifo_close_inherited(&cancel.context.dir, token);
	if (process_lease_carries_token((uint32_t)getpid(), token))
		job_step_leave();
}

int cancel_jobs(struct settings *settings)
{
	int r = shared_state_open(
		settings, false, &cancel.context, &cancel.queue, &cancel.view);
	int status;

	if (r != 0)
		return r;
	status = read_operands(settings);
	if (!targets_confirm(settings)) {
		diag("cancelled nothing");
		return EXIT_NOT_DONE;
	}
	for (size_t i = 0; i < cancel.count; i++) {
		leave_job(cancel.targets[i].termination.owner.token);
		r = target_request(&cancel.targets[i]);
		status = r > status ? r : status;
	}
	targets_locate_again();
	/* all bells: jobs that come after the cancelled ones in the queue can plan anew as well */
	bell_ring_all(&cancel.context.dir);
	r = targets_end();
	return r > status ? r : status;
}
