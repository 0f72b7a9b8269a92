/*
 * The main job: a ticket, a turn, a lease, and then the command instead of us.
 */
#include <errno.h>
#include <signal.h>

#include "broker.h"
#include "clock.h"
#include "context.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "explain.h"
#include "launch.h"
#include "limits.h"
#include "parse.h"
#include "request.h"
#include "rights.h"
#include "step.h"
#include "verbs.h"
#include "waiting.h"

/* Everything of this one job; too big for the stack. */
static struct {
	struct context context;
	struct broker broker;
	struct request request;
	struct waiting_line line;
	char program[PATH_MAX];
	char user[USER_SIZE];
} job;

/* --- before the queue -------------------------------------------------------------- */

/* -D and the command are wrong now or never: not after three days in the queue. */
static int check_command(const struct settings *settings)
{
	int r;

	rights_as_user_begin();
	r = settings->chdir && chdir(settings->chdir) < 0 ? -errno : 0;
	rights_as_user_end();
	if (r < 0) {
		diag("cannot change to '%s': %s", settings->chdir, strerror(-r));
		return EXIT_MISUSE;
	}
	r = find_program(settings->command[0], job.program);
	if (r == 0)
		return 0;
	if (r == -EACCES) {
		diag("cannot execute '%s': %s", settings->command[0], strerror(EACCES));
		return EXIT_CANNOT_EXECUTE;
	}
	diag("command '%s' was not found", settings->command[0]);
	return EXIT_NOT_FOUND;
}

/* --- in the queue ------------------------------------------------------------------ */

static int give_up(const struct settings *settings)
{
	char words[512], waited[DURATION_SIZE];
	struct text text = TEXT_ON(words);

	waiting_line_reason(&job.line, &job.broker, &text);
	broker_leave(&job.broker);
	if (settings->immediate && !settings->immediate_ms) {
		note("not available at once: %s", words);
	} else {
		format_duration(settings->immediate ? settings->immediate_ms
						    : settings->max_wait_ms,
			waited);
		note("gave up after %s: %s", waited, words);
	}
	return EXIT_GAVE_UP;
}

static int obey_cancel(void)
{
	char name[64];
	struct text text = TEXT_ON(name);

	describe_user(job.broker.cancelled_by, NULL, &text);
	broker_leave(&job.broker);
	note("ticket %llu was cancelled by %s", (unsigned long long)job.broker.number,
		name);
	return 128 + SIGTERM;
}

/* The job that this one was to come after has not ended well, and will not. */
static int lose_hope(void)
{
	const struct held *held = &job.broker.held;

	broker_leave(&job.broker);
	if (held->status > 0)
		note("gave up: job %llu has ended with status %d",
			(unsigned long long)held->by, held->status);
	else
		note("gave up: how job %llu has ended is not recorded",
			(unsigned long long)held->by);
	return EXIT_GAVE_UP;
}

/* CLOCK_BOOTTIME by which the job has to have started. */
static int64_t patience_until_ms(const struct settings *settings)
{
	int64_t now_ms = clock_boot_ms();

	if (settings->immediate)
		return now_ms + settings->immediate_ms;
	return settings->max_wait_ms < 0 ? INT64_MAX : now_ms + settings->max_wait_ms;
}

/* Records that nobody can read are skipped; that they are there is said once. */
static void report_broken(void)
{
	static bool is_told;

	if (is_told ||
		(!job.broker.view.broken_records && !job.broker.queue.first_broken))
		return;
	note("some records in '%s' cannot be read and are skipped", job.context.dir.path);
	is_told = true;
}

/* Turns until the ticket is granted: 0, or the exit status. */
static int wait_for_turn(const struct settings *settings)
{
	struct broker *broker = &job.broker;
	int64_t until_ms = patience_until_ms(settings);
	bool only_now = settings->immediate && !settings->immediate_ms;

	for (;;) {
		struct why why = WHY_NONE;
		int64_t wake_ms = INT64_MAX;
		int r = broker_turn(broker, &why);

		report_broken();
		if (broker->has_rejoined)
			note("the queue in '%s' was replaced; this job is ticket %llu now",
				job.context.dir.path, (unsigned long long)broker->number);
		if (r == BROKER_GRANTED)
			return 0;
		if (r == BROKER_CANCELLED)
			return obey_cancel();
		if (r == BROKER_HOPELESS)
			return lose_hope();
		if (r < 0) {
			diag("%s", why.text[0] ? why.text : strerror(-r));
			return EXIT_MISUSE;
		}
		/* a verdict takes one probe, also for who does not want to wait */
		if (clock_boot_ms() >= until_ms && !(only_now && r == BROKER_PROBING))
			return give_up(settings);
		if (r == BROKER_WAITING && !only_now)
			wake_ms = waiting_line_show(&job.line, broker, clock_boot_ms());
		r = broker_wait(
			broker, min_i64(wake_ms, only_now ? INT64_MAX : until_ms));
		if (r < 0) {
			diag("cannot wait: %s", strerror(-r));
			return EXIT_MISUSE;
		}
	}
}

/* --- the ways to run --------------------------------------------------------------- */

/* Inside a lease: its GPUs, or the first of them; nobody arbitrates between steps. */
static int run_step(const struct settings *settings, const struct snapshot_lease *around)
{
	struct launch step = {
		.context = &job.context,
		.view = &job.broker.view,
		.owner = &around->lease.owner,
		.ticket = around->lease.ticket,
		.gpus = around->lease.gpus,
		.need = lease_need(&around->lease),
		.live_fd = -1,
		.program = job.program,
	};
	unsigned has = gpuset_count(&around->lease.gpus);

	if (settings->gpus_given && settings->gpus > has) {
		diag("cannot use %u GPUs: the lease around this step (ticket %llu) has %u",
			settings->gpus, (unsigned long long)around->lease.ticket, has);
		return EXIT_MISUSE;
	}
	if (settings->gpus_given)
		step.gpus = step_first_gpus(&around->lease.gpus, settings->gpus);
	if (settings->dry_run) {
		char gpus[256];

		ending_name_gpus(&job.broker.view, &step.gpus, gpus, sizeof(gpus));
		printf("would start now on GPU %s, as a step of ticket %llu\n",
			gpus[0] ? gpus : "none",
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
		return lose_hope();
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
		printf("would start now on GPU %s\n", gpus[0] ? gpus : "none");
		return 0;
	}
	position = broker_position(broker);
	waiting_line_reason(&job.line, broker, &text);
	waiting_line_estimate(broker, &text);
	printf("would wait, %u%s in the queue: %s\n", position, ordinal_end(position),
		words);
	return EXIT_GAVE_UP;
}

static int run_leased(struct settings *settings)
{
	struct why why = WHY_NONE;
	struct launch own = {
		.context = &job.context,
		.view = &job.broker.view,
		.owner = &job.broker.ticket.owner,
		.program = job.program,
	};
	int r = 0;

	local_user_name(getuid(), job.user, sizeof(job.user));
	r = request_make(settings, &job.context, &job.request);
	if (r == 0 && settings->gpus)
		r = request_choose(settings, &job.context, &job.broker, &job.request,
			job.line.limited);
	if (r != 0)
		return r;
	if (settings->dry_run)
		return foresee(settings);
	if (broker_join(&job.broker, &job.request, job.user, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	verbose("ticket %llu in '%s'", (unsigned long long)job.broker.number,
		job.context.dir.path);
	if (broker_has_to_wait(&job.broker)) {
		r = wait_for_turn(settings);
		if (r != 0)
			return r;
		own.gpus = job.broker.verdict.gpus;
		own.need = request_need(&job.request);
	}
	own.ticket = job.broker.number;
	own.live_fd = job.broker.live_fd;
	return launch(&own);
}

int verb_run(struct settings *settings)
{
	const struct snapshot_lease *around;
	int r;

	limits_raise();
	r = context_open(settings, &job.context);
	if (r == 0)
		r = check_command(settings);
	if (r != 0)
		return r;
	r = broker_init(&job.broker, &job.context.dir, &job.context.prober);
	job.broker.max_waiting = job.context.config.max_waiting;
	job.broker.all_waiting = job.context.config.all_waiting;
	job.broker.view.limits = request_limits(&job.context.config);
	if (r == 0)
		r = broker_survey(&job.broker);
	if (r < 0) {
		diag("cannot use the state in '%s': %s", job.context.dir.path,
			strerror(-r));
		return EXIT_MISUSE;
	}
	around = step_find_lease(&job.broker.view);
	return around ? run_step(settings, around) : run_leased(settings);
}
