/*
 * The main job: a ticket, a turn, a lease, and then the command instead of us.
 */
#include <errno.h>

#include "attempts.h"
#include "background.h"
#include "batch_member.h"
#include "broker.h"
#include "cli_table.h"
#include "clock.h"
#include "context.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "explain.h"
#include "launch.h"
#include "lease_only.h"
#include "limits.h"
#include "parse.h"
#include "redirect.h"
#include "request.h"
#include "queueing.h"
#include "session.h"
#include "setup.h"
#include "step.h"
#include "userfile.h"
#include "verbs.h"
#include "waiting.h"

/* Everything of this one job; too big for the stack. */
static struct {
	struct request request;
	struct waiting_line line;
	char **command;
	char user[USER_SIZE];
	struct context context;
	char program[PATH_MAX];
	struct broker broker;
} job;

/* --- before the queue -------------------------------------------------------------- */

/* There is no such command; what may have been meant. */
static int refuse_unknown(const char *word)
{
	const struct option_def *option = options_find(cli_options, word, strlen(word));
	size_t size = strcspn(word, " \t");
	char hint[64] = "", program[PATH_MAX];
	autofree char *first = strndup(word, size);

	if (option && option->help)
		(void)snprintf(hint, sizeof(hint), "; did you mean --%s?", option->name);
	else if (word[size] && first && find_program(first, program) == 0)
		text_copy(hint, sizeof(hint), "; leave the quotes around it out");
	diag("command '%s' was not found%s", word, hint);
	return EXIT_NOT_FOUND;
}

/* -D, -i, -o and the command are wrong now or never: not after three days in the queue. */
static int check_command(const struct settings *settings)
{
	int r = settings->chdir ? userfile_chdir(settings->chdir) : 0;

	if (r < 0) {
		diag("cannot change to '%s': %s", settings->chdir, strerror(-r));
		return EXIT_MISUSE;
	}
	if (settings->lease_only || settings->shell)
		return lease_check(settings);
	r = attempts_check(settings);
	if (r == 0 && redirect_check(&job.context) < 0)
		r = EXIT_MISUSE;
	if (r != 0)
		return r;
	job.command = settings->command;
	if (setup_is_wanted(settings)) {
		r = setup_wrap(settings, &job.command);
		if (r != 0)
			return r;
	}
	r = find_program(job.command[0], job.program);
	if (r == 0)
		return 0;
	if (r == -EACCES) {
		diag("cannot execute '%s': %s", job.command[0], strerror(EACCES));
		return EXIT_CANNOT_EXECUTE;
	}
	return refuse_unknown(job.command[0]);
}

/* --- the ways to run --------------------------------------------------------------- */

/* On stdout, of a job that would start; the caller ends the line. */
static void say_start(const char *gpus)
{
	printf("would start now%s%s", gpus[0] ? " on GPU " : ", without GPUs", gpus);
}

/* Inside a lease: its GPUs, or some of them; nobody arbitrates between steps. */
static int run_step(const struct settings *settings, const struct snapshot_lease *around)
{
	struct launch step = {
		.context = &job.context,
		.view = &job.broker.view,
		.owner = &around->lease.owner,
		.ticket = lease_job(&around->lease),
		.attempt = around->lease.attempt,
		.gpus = around->lease.gpus,
		.need = lease_need(&around->lease),
		.live_fd = -1,
		.program = job.program,
		.command = job.command,
	};
	unsigned has = gpuset_count(&around->lease.gpus);

	if (step_check(settings, &around->lease) != 0)
		return EXIT_MISUSE;
	if (settings->gpus_given && settings->gpus > has) {
		diag("cannot use %u GPUs: the lease around this step (ticket %llu) has %u",
			settings->gpus, (unsigned long long)around->lease.ticket, has);
		return EXIT_MISUSE;
	}
	if (request_choose_step(settings, &job.broker.view, &around->lease, &step.gpus) !=
		0)
		return EXIT_MISUSE;
	if (settings->dry_run) {
		char gpus[256];

		ending_name_gpus(&job.broker.view, &step.gpus, gpus, sizeof(gpus));
		say_start(gpus);
		printf(", as a step of ticket %llu\n",
			(unsigned long long)around->lease.ticket);
		return 0;
	}
	verbose("a step of ticket %llu", (unsigned long long)around->lease.ticket);
	return launch(&step);
}

/* What would happen now, on stdout, and no ticket taken. */
static int foresee(const struct settings *settings)
{
	struct broker *broker = &job.broker;
	int64_t until_ms = clock_boot_ms() + context_patience_ms(&job.context);
	char words[512], gpus[256];
	struct text text = TEXT_ON(words);
	struct why why = WHY_NONE;
	unsigned position;
	int r = settings->gpus ? broker_probe(broker, until_ms) : 0;

	if (r == 0)
		r = broker_foresee(broker, &job.request, until_ms, &why);
	if (r == BROKER_HOPELESS)
		return queueing_lose_hope(broker);
	if (r < 0 && why.text[0]) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (r < 0) {
		diag("cannot read the state in '%s': %s", job.context.dir.path,
			strerror(-r));
		return EXIT_MISUSE;
	}
	if (broker->verdict.kind == VERDICT_START) {
		ending_name_gpus(
			&broker->view, &broker->verdict.gpus, gpus, sizeof(gpus));
		say_start(gpus);
		printf("\n");
		return 0;
	}
	position = broker_position(broker);
	waiting_line_reason(&job.line, broker, &text);
	waiting_line_estimate(broker, &text);
	printf("would wait, %u%s in the queue: %s\n", position, ordinal_end(position),
		words);
	return EXIT_GAVE_UP;
}

static struct queueing_signals signals;

static struct queueing queueing = { .signals = &signals,
	.context = &job.context,
	.broker = &job.broker,
	.line = &job.line };

/* The job has its ticket: who waits for that is told. */
static int announce(const struct settings *settings)
{
	verbose("ticket %llu in '%s'", (unsigned long long)job.broker.number,
		job.context.dir.path);
	if (in_session())
		session_announce(job.broker.number);
	batch_tell_queued(job.broker.number);
	return settings->submit ? background_announce(&job.context, job.broker.number)
				: 0;
}

/* The job has been granted what it wants. */
static int run_granted(const struct settings *settings, struct launch *own)
{
	struct attempts attempts = {
		.queueing = &queueing,
		.request = &job.request,
		.launch = own,
		.keeps_output = settings->submit,
	};

	own->ticket = job.broker.number;
	own->live_fd = job.broker.live_fd;
	if (settings->lease_only)
		return lease_hold(own, &job.broker);
	if (settings->shell)
		return lease_to_shell(own, &job.broker);
	return care_is_wanted(settings) ? attempts_run(&attempts) : launch(own);
}

static int run_leased(struct settings *settings)
{
	struct why why = WHY_NONE;
	struct launch own = {
		.context = &job.context,
		.view = &job.broker.view,
		.owner = &job.broker.ticket.owner,
		.program = job.program,
		.command = job.command,
	};
	int r = 0;

	local_user_name(getuid(), job.user, sizeof(job.user));
	r = request_make(settings, &job.context, &job.request);
	if (r == 0 && settings->gpus && job.context.has_allocation &&
		!allocation_has_gpus(&job.context.allocation)) {
		allocation_refuse(&job.context.allocation);
		return EXIT_MISUSE;
	}
	if (r == 0 && settings->gpus && (settings->shell || !settings->adopt_pid))
		r = request_choose(settings, &job.context, &job.broker, &job.request,
			job.line.limited);
	if (r != 0)
		return r;
	if (settings->dry_run)
		return foresee(settings);
	if (settings->shell)
		r = lease_find_shell(settings, &job.broker);
	if (r != 0)
		return r;
	if (settings->lease_only && settings->adopt_pid)
		return lease_adopt(&job.context, &job.broker, &job.request);
	r = broker_join(&job.broker, &job.request, job.user, &why);
	if (r == -EDQUOT && batch_is_put_off(why.text))
		return EXIT_GAVE_UP;
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	r = announce(settings);
	if (r != 0)
		broker_leave(&job.broker);
	if (r == 0 && broker_has_to_wait(&job.broker)) {
		r = queueing_wait(&queueing);
		own.gpus = job.broker.verdict.gpus;
		own.need = request_need(&job.request);
	}
	return r != 0 ? r : run_granted(settings, &own);
}

/* Where the job is to run: here (0), or somewhere else, where it does; then *@ret_status. */
static bool is_elsewhere(const struct settings *settings, int *ret_status)
{
	if (settings->screen && !in_session()) {
		*ret_status = session_begin(&job.context);
		return true;
	}
	return settings->submit && !background_begin(&job.context, ret_status);
}

static int run(struct settings *settings)
{
	const struct snapshot_lease *around = NULL;
	int r;

	limits_raise();
	r = context_open(settings, &job.context);
	if (settings->screen)
		session_prepare();
	if (r == 0)
		r = check_command(settings);
	if (r != 0 || is_elsewhere(settings, &r))
		return r;
	limits_ignore_broken_pipe();
	r = broker_init(&job.broker, &job.context.dir, &job.context.prober);
	job.broker.max_waiting = job.context.config.max_waiting;
	job.broker.all_waiting = job.context.config.all_waiting;
	job.broker.recorder = launch_recorder(&job.context);
	job.broker.view.limits = request_limits(&job.context.config);
	if (r == 0)
		r = broker_survey(&job.broker);
	if (r < 0) {
		diag("cannot use the state in '%s': %s", job.context.dir.path,
			strerror(-r));
		return EXIT_MISUSE;
	}
	/* what is put somewhere else is a job of its own, also from inside a lease */
	if (!settings->submit && !settings->screen)
		around = step_find_lease(&job.broker.view);
	return around ? run_step(settings, around) : run_leased(settings);
}

int verb_run(struct settings *settings)
{
	int r = run(settings);

	return settings->shell ? lease_fail_shell(settings, r) : r;
}
