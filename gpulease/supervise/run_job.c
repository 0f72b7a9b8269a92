#include <errno.h>

#include "attempts.h"
#include "background.h"
#include "broker.h"
#include "command_caveat.h"
#include "find_program.h"
#include "local_user.h"
#include "clock.h"
#include "context.h"
#include "diag.h"
#include "exclusive_step.h"
#include "exitcodes.h"
#include "launch.h"
#include "lease_adopt.h"
#include "generous_limit.h"
#include "lease_hold.h"
#include "lease_shell.h"
#include "missing_program.h"
#include "namespaces.h"
#include "notifier.h"
#include "parse.h"
#include "redirect.h"
#include "other_job.h"
#include "request.h"
#include "selection.h"
#include "queueing.h"
#include "rlimits.h"
#include "run_job.h"
#include "session.h"
#include "script.h"
#include "setup.h"
#include "task_words.h"
#include "show_foreseen.h"
#include "job_step.h"
#include "userfile.h"
#include "waiting_line.h"

/* The one job of this process; too big for the stack. */
static struct {
	struct request request;
	struct waiting_line line;
	char **command;
	char user[USER_SIZE];
	struct context context;
	char program[PATH_MAX];
	struct step_lock lock; /* of a step */
	int live_fd;           /* the FIFO of another job that this process joins; -1 */
	struct broker broker;
	struct queueing_signals signals;
	struct queueing queueing;
} job;

/* --- before the queue -------------------------------------------------------------- */

/*
 * Refuses a command whose script does not exist.  If the job waits for other jobs, they may still
 * write the script.
 */
static int check_script(const struct settings *settings)
{
	const struct run_request *request = &settings->request;
	char script[PATH_MAX];
	struct text text = TEXT_ON(script);

	script_note_directives(settings->environment.command);
	if (request->after || request->after_ok || request->singleton ||
		!script_is_missing(&settings->environment, &text))
		return 0;
	diag("there is no script '%s'", script);
	return EXIT_NOT_FOUND;
}

/*
 * Checks -D, -i, -o, -e and the command before the job joins the queue, so that a mistake is
 * refused now and not after three days of waiting.  Changes to the folder of -D.  Sets job.command
 * and job.program.  Returns 0 or an exit status.
 */
static int check_command(const struct settings *settings)
{
	struct run_environment environment = settings->environment;
	int r = settings->environment.chdir ? userfile_chdir(settings->environment.chdir)
					    : 0;

	if (r < 0) {
		diag("cannot change to '%s': %s", settings->environment.chdir,
			strerror(-r));
		return EXIT_MISUSE;
	}
	if (settings->request.lease_only || settings->request.shell)
		return lease_hold_check(settings);
	r = attempts_check(settings);
	if (r == 0 && redirect_check(&job.context) < 0)
		r = EXIT_MISUSE;
	if (r != 0)
		return r;
	if (are_tasks_wanted(settings) && !setup_is_wanted(&environment)) {
		r = find_program(environment.command[0], job.program);
		if (r != 0)
			return missing_program_refuse(environment.command[0], r);
	}
	if (are_tasks_wanted(settings))
		r = task_words_wrap(settings, &environment.command);
	job.command = environment.command;
	if (r == 0 && setup_is_wanted(&environment))
		r = setup_wrap(&environment, &job.command);
	if (r != 0)
		return r;
	r = find_program(job.command[0], job.program);
	if (r == 0) {
		if (settings->request.gpus)
			command_caveat_note(settings->environment.command);
		return check_script(settings);
	}
	return missing_program_refuse(job.command[0], r);
}

/* --- the ways to run --------------------------------------------------------------- */

/* Prints what --dry-run has found.  Returns the exit status. */
static int print_foreseen(struct foreseen *foreseen)
{
	foreseen->view = &job.broker.view;
	if (job.context.settings->output.json)
		show_foreseen_json(foreseen, stdout);
	else
		show_foreseen(foreseen, stdout);
	return foreseen->verdict == VERDICT_START ? EXIT_DONE : EXIT_GAVE_UP;
}

/* Whether a step of the lease @around has its GPUs for itself. */
static bool is_alone(const struct run_request *request, const struct lease *around)
{
	struct need need = lease_need(around);

	return request->exclusive || (request->apart && need_is_whole(&need));
}

/*
 * Says once in a job that a step has GPUs together with another step, unless it asked for that, or
 * is inside a step.
 */
static void note_sharing(
	const struct run_request *request, struct step_lock *lock, uint64_t id)
{
	if (request->overlap || getenv("GPULEASE_STEP") || !step_lock_is_shared(lock))
		return;
	note("a step of job %llu has GPUs together with another step; for GPUs of its own give "
	     "each a GPU option, as --gpus=1, else --overlap",
		(unsigned long long)id);
}

/*
 * Chooses the GPUs of a step: the first of those that it may have, or, for an exclusive step, the
 * first that no other exclusive step has; waits for them if need be.  A step with tasks gets a
 * number.  Returns 0 or an exit status.
 */
static int choose_for_step(
	const struct settings *settings, const struct lease *around, struct launch *step)
{
	const struct run_request *request = &settings->request;
	struct step_lock *lock = &job.lock;
	struct gpu_order order;
	unsigned wanted;
	int r = selection_choose_step(request, step->view, around, &order, &wanted);

	if (r != 0)
		return r;
	for (unsigned i = 0; i < wanted && i < order.count; i++)
		gpuset_add(&step->gpus, order.slots[i]);
	if (request->dry_run)
		return 0;
	lock->dir = &job.context.dir;
	lock->token = around->owner.token;
	lock->level = step->level;
	lock->slots = order.slots;
	lock->slot_count = order.count;
	if (is_alone(request, around) && wanted) {
		lock->wanted = wanted;
		r = exclusive_step_wait(&job.context, lock, step->ticket);
		step->gpus = lock->gpus;
		step->level = lock->level + 1;
	} else {
		step_lock_share(lock, &step->gpus);
		lock->slot_count = 0;
		if (are_tasks_wanted(settings))
			(void)!step_lock_try(lock); /* for its number alone */
	}
	lock->slots = NULL; /* they end with this function */
	if (r == 0)
		note_sharing(request, lock, step->ticket);
	return r;
}

/* Runs the command as a step of the lease @around, on its GPUs or some of them. */
static int run_step(const struct settings *settings, const struct snapshot_lease *around)
{
	const struct lease *lease = &around->lease;
	struct launch step = {
		.context = &job.context,
		.view = &job.broker.view,
		.owner = &lease->owner,
		.ticket = lease_job(lease),
		.attempt = lease->attempt,
		.order = job_step_order(&settings->request),
		.need = lease_need(lease),
		.step = &job.lock,
		.level = settings->request.job ? 0 : job_step_level(),
		.live_fd = job.live_fd,
		.program = job.program,
		.command = job.command,
	};
	int r = job_step_check(settings, lease);

	if (r == 0)
		r = choose_for_step(settings, lease, &step);
	if (r != 0)
		return r;
	if (settings->request.dry_run)
		return print_foreseen(&(struct foreseen){ .verdict = VERDICT_START,
			.gpus = gpu_order_of(step.view, &step.gpus, step.order),
			.start_ms = clock_boot_ms(),
			.step_of = step.ticket });
	verbose("a step of job %llu", (unsigned long long)step.ticket);
	return launch(&step);
}

/* --dry-run: prints what would happen now, without taking a ticket. */
static int dry_run(const struct run_request *request)
{
	struct broker *broker = &job.broker;
	int64_t until_ms = clock_boot_ms() + context_patience_ms(&job.context);
	const struct verdict *verdict = &broker->result.verdict;
	char words[512] = "";
	struct foreseen foreseen = { .why = words };
	struct usual_kind kind;
	struct text text = TEXT_ON(words);
	struct why why = WHY_NONE;
	int r = request->gpus ? broker_probe(broker, until_ms) : 0;

	if (r == 0)
		r = broker_foresee(broker, &job.request, until_ms, &why);
	if (r == BROKER_HOPELESS)
		return queueing_dependency_failed(broker);
	if (r < 0 && why.text[0]) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (r < 0) {
		diag("cannot read the state in '%s': %s", job.context.dir.path,
			strerror(-r));
		return EXIT_MISUSE;
	}
	foreseen.verdict = verdict->kind;
	kind = foretell_kind(&broker->ticket);
	(void)!foretell_usual(job.context.dir.fd, &kind, 1, &foreseen.usual);
	if (verdict->kind == VERDICT_START) {
		foreseen.gpus =
			gpu_order_of(&broker->view, &verdict->gpus, request->gpu_ids);
		foreseen.start_ms = clock_boot_ms();
		foreseen.sends_back = broker->result.sends_back;
		return print_foreseen(&foreseen);
	}
	if (verdict->kind == VERDICT_LIMIT)
		foreseen.limit_line = verdict->limit.line;
	foreseen.position = broker_position(broker);
	foreseen.start_ms = waiting_line_start_ms(broker);
	waiting_line_reason(&job.line, broker, &text);
	broker_foretell(broker, &foreseen.foretold);
	waiting_line_estimate(broker, &foreseen.foretold, &text);
	return print_foreseen(&foreseen);
}

/*
 * Reports the ticket number to whatever started the job: the caller of --submit, an observer.
 * Returns 0, or an exit status if the job must not go on.
 */
static int report_ticket(const struct run_environment *environment)
{
	verbose("job %llu in '%s'", (unsigned long long)job.broker.number,
		job.context.dir.path);
	if (job.queueing.observer)
		job.queueing.observer->queued(
			job.queueing.observer->context, job.broker.number);
	else if (environment->submit)
		generous_limit_note(job.context.dir.fd, &job.broker.ticket);
	return environment->submit ? background_announce(&job.context, job.broker.number)
				   : 0;
}

/* Runs the job, which has its lease. */
static int run_granted(const struct settings *settings, struct launch *own)
{
	struct attempts attempts = {
		.queueing = &job.queueing,
		.request = &job.request,
		.launch = own,
		.keeps_output = settings->environment.submit,
	};
	int r;

	own->ticket = broker_job(&job.broker);
	own->live_fd = job.broker.live_fd;
	if (gpuset_is_empty(&own->gpus))
		own->leaseless = &job.broker.ticket;
	if (!is_supervision_wanted(settings))
		notifier_started(own->ticket, own->view, &own->gpus);
	if (settings->request.lease_only)
		r = lease_hold(own, &job.broker);
	else if (settings->request.shell)
		r = lease_shell_give(own, &job.broker);
	else
		r = is_supervision_wanted(settings) ? attempts_run(&attempts)
						    : launch(own);
	/* nothing has started, unless the end was told already; the watchdog of a shell tells it */
	if (r != 0)
		notifier_ended(
			own->ticket, clock_boot_ms(), &(struct end_facts){ .status = r });
	return r;
}

/*
 * Makes the request, with the GPUs that the job may have, and refuses one that can never be met.
 * Returns 0 or an exit status.
 */
static int make_request(struct settings *settings)
{
	int r = request_make(settings, &job.context, &job.request);

	if (r != 0 || !settings->request.gpus)
		return r;
	if (job.context.has_allocation &&
		!slurm_allocation_has_gpus(&job.context.allocation)) {
		slurm_allocation_report_no_gpus(&job.context.allocation);
		return EXIT_MISUSE;
	}
	/* --pid without --shell: the lease is for the GPUs that the process uses already */
	if (settings->request.adopt_pid && !settings->request.shell)
		return 0;
	return selection_choose(&settings->request, &job.context, &job.broker,
		&job.request, job.line.limited);
}

/* Runs a job with a ticket and a lease of its own.  Returns the exit status. */
static int run_leased(struct settings *settings)
{
	const struct job_observer *observer = job.queueing.observer;
	struct why why = WHY_NONE;
	struct launch own = {
		.context = &job.context,
		.view = &job.broker.view,
		.owner = &job.broker.ticket.owner,
		.order = settings->request.gpu_ids,
		.program = job.program,
		.command = job.command,
	};
	int r = 0;

	local_user_name(getuid(), job.user, sizeof(job.user));
	r = make_request(settings);
	if (r != 0)
		return r;
	if (settings->request.dry_run)
		return dry_run(&settings->request);
	notifier_read_variable(settings);
	job.broker.input.recorder = launch_recorder(&job.context);
	/* before the ticket: the owner of the lease must be known when the job is granted */
	if (settings->request.shell)
		r = lease_shell_find(&settings->request, &job.broker);
	if (r != 0)
		return r;
	if (settings->request.lease_only && settings->request.adopt_pid)
		return lease_adopt(&job.context, &job.broker, &job.request);
	r = broker_join(&job.broker, &job.request, job.user, &why);
	/* too many tickets of this user: the runner of a batch tries again later */
	if (r == -EDQUOT && observer) {
		observer->put_off(observer->context, why.text);
		return EXIT_GAVE_UP;
	}
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	/* not before: the reported id must belong to a job that is in the queue */
	r = report_ticket(&settings->environment);
	if (r != 0)
		broker_leave(&job.broker);
	else
		notifier_start(settings, &job.broker);
	/* a job without GPUs that waits for no other job was granted when it joined */
	if (r == 0 && broker_has_to_wait(&job.broker)) {
		r = queueing_wait(&job.queueing);
		own.gpus = job.broker.result.verdict.gpus;
		own.need = request_need(&job.request);
	}
	return r != 0 ? r : run_granted(settings, &own);
}

/*
 * Refuses what needs a /proc of this pid namespace: to find the processes of a job, and to name
 * this one in a record.  A plain step needs neither.  Returns 0 or an exit status.
 */
static int check_proc(const struct settings *settings, bool is_step)
{
	if (namespaces_has_own_proc() ||
		(is_step && !settings->request.exclusive && !settings->care.limit_ms))
		return 0;
	diag("/proc is missing, or shows another pid namespace than that of this process; "
	     "mount its own: unshare --mount-proc, or mount -t proc proc /proc");
	return EXIT_MISUSE;
}

/*
 * Refuses a line of a jobs file whose runner is in a job, if the lease of that job was lost: no job
 * starts before the job ends, and the job waits for the runner.  Returns 0 or an exit status.
 */
static int check_own_end(void)
{
	const struct snapshot *view = &job.broker.view;

	if (!job.queueing.observer || !view->has_unknown_job ||
		strcmp(view->unknown.owner.token, job_step_left()) != 0)
		return 0;
	diag("the runner is in a job whose lease was lost: no job starts before that one "
	     "ends");
	return EXIT_MISUSE;
}

/* Runs the job; see run_job(). */
static int run_anywhere(struct settings *settings)
{
	const struct snapshot_lease *around = NULL;
	struct snapshot_lease lost;
	int r;

	rlimits_raise();
	r = context_open(settings, &job.context);
	if (r == 0)
		r = check_command(settings);
	/* the checks above print on the user's terminal; what follows may run in the background */
	if (r != 0 ||
		(settings->environment.submit && !background_begin(&job.context, &r)))
		return r;
	rlimits_ignore_broken_pipe();
	r = broker_init(&job.broker, &job.context.dir, &job.context.prober);
	job.broker.input.max_waiting = job.context.config.max_waiting;
	job.broker.input.share = job.context.config.share;
	job.broker.input.all_waiting = job.context.config.all_waiting;
	if (has_own_usage(&settings->request))
		job.broker.input.own_usage = &job.context.usage;
	job.broker.input.begin_ms = settings->request.begin_ms;
	job.broker.input.is_held = settings->request.hold;
	job.broker.input.sends_none_back =
		settings->request.immediate && !settings->request.immediate_ms;
	job.broker.view.limits = request_limits(&job.context.config);
	if (r == 0)
		r = broker_survey(&job.broker);
	if (r < 0) {
		diag("cannot use the state in '%s': %s", job.context.dir.path,
			strerror(-r));
		return EXIT_MISUSE;
	}
	/* inside a lease, a command becomes a step; --submit still makes a new job */
	job.live_fd = -1;
	if (settings->request.job) {
		r = other_job_join(settings, &job.broker, &around, &job.live_fd);
		if (r != 0)
			return r;
	} else if (!settings->environment.submit) {
		around = job_step_find_lease(&job.broker.view);
		if (!around)
			r = job_step_find_lost(
				&job.broker.queue, &job.broker.view, &lost);
		if (r == JOB_STEP_LOST)
			around = &lost;
		else if (r != 0)
			return r;
	}
	r = check_own_end();
	if (r == 0)
		r = check_proc(settings, around != NULL);
	if (r != 0)
		return r;
	return around ? run_step(settings, around) : run_leased(settings);
}

int run_job(struct settings *settings, const struct job_observer *observer)
{
	int r;

	job.queueing = (struct queueing){ .signals = &job.signals,
		.context = &job.context,
		.broker = &job.broker,
		.line = &job.line,
		.observer = observer };
	r = run_anywhere(settings);
	(void)session_flush();
	return settings->request.shell ? lease_shell_fail(&settings->request, r) : r;
}
