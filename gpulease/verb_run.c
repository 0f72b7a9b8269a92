/*
 * The main job: a ticket, a turn, a lease, and then the command instead of us.
 */
#include <errno.h>
#include <signal.h>

#include "broker.h"
#include "clock.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "inventory.h"
#include "launch.h"
#include "limits.h"
#include "parse.h"
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

/* For people to read: words with blanks in them are shown in quotes. */
static void join_command(char *const command[], char *out, size_t size)
{
	struct text text = text_on(out, size);

	for (; *command && !text.cut; command++) {
		bool has_blank = !**command || strpbrk(*command, " \t\n");

		text_addf(&text, has_blank ? "%s'%s'" : "%s%s", text.used ? " " : "",
			*command);
	}
}

static void make_request(const struct settings *settings)
{
	struct request *request = &job.request;

	request->gpus = settings->gpus;
	request->limit_ms = settings->limit_ms;
	request->grace_ms = settings->limit_ms ? settings->grace_ms : 0;
	request->allow = GPUSET_ALL;
	if (settings->name)
		text_copy(request->name, sizeof(request->name), settings->name);
	join_command(settings->command, request->command, sizeof(request->command));
	local_user_name(getuid(), job.user, sizeof(job.user));
}

/* "limited to GPU 0 by CUDA_VISIBLE_DEVICES" */
static void say_limited(const struct gpuset *allow)
{
	struct text text = TEXT_ON(job.line.limited);
	const char *between = gpuset_count(allow) == 1 ? "GPU " : "GPUs ";

	text_add(&text, "limited to ");
	gpuset_for_each (slot, allow) {
		text_addf(&text, "%s%u", between,
			snapshot_gpu_index(&job.broker.view, (unsigned)slot));
		between = ",";
	}
	text_add(&text, " by CUDA_VISIBLE_DEVICES");
}

/* Says why the request can never be met, if so. */
static int check_possible(
	const struct settings *settings, const struct gpuset *allow, const char *visible)
{
	const struct snapshot *view = &job.broker.view;
	struct gpuset all = inventory_all(view);
	unsigned has = gpuset_count(&all), may = gpuset_count(allow),
		 wants = settings->gpus;
	const char *plural = wants == 1 ? "" : "s";

	if (has == 0) {
		diag("no GPU is known: %s", view->probe.trouble.text[0]
						    ? view->probe.trouble.text
						    : "nvidia-smi did not answer");
		return EXIT_MISUSE;
	}
	if (may >= wants)
		return 0;
	if (has < wants)
		diag("cannot lease %u GPU%s: this machine has %u", wants, plural, has);
	else if (visible)
		diag("cannot lease %u GPU%s: CUDA_VISIBLE_DEVICES=%s names %u that fit%s",
			wants, plural, visible, may, may == 1 ? "s" : "");
	else
		diag("cannot lease %u GPU%s of type '%s': this machine has %u", wants,
			plural, settings->model, may);
	return EXIT_MISUSE;
}

/* Which GPUs the job may have, and whether there are enough of them at all. */
static int choose_gpus(const struct settings *settings)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	struct snapshot *view = &job.broker.view;
	struct gpuset allow = inventory_all(view);
	bool is_bound = (visible && visible[0]) || settings->model[0];

	if (!job.context.prober.nvidia_smi && !settings->sim_gpus)
		return context_no_gpus();
	if (is_bound || gpuset_count(&allow) < settings->gpus) {
		int64_t patience_ms = context_patience_ms(&job.context);

		if (broker_probe(&job.broker, clock_boot_ms() + patience_ms) < 0) {
			diag("cannot read the state in '%s'", job.context.dir.path);
			return EXIT_MISUSE;
		}
		allow = inventory_all(view);
	}
	if (settings->model[0])
		allow = inventory_by_model(view, settings->model);
	if (visible && visible[0]) {
		struct gpuset named = inventory_by_visible(view, visible);

		allow = gpuset_and(&allow, &named);
		say_limited(&allow);
	}
	if (is_bound)
		job.request.allow = allow;
	return check_possible(settings, &allow, visible && visible[0] ? visible : NULL);
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
	verbose("a step of ticket %llu", (unsigned long long)around->lease.ticket);
	return launch(&step);
}

static int run_leased(const struct settings *settings)
{
	struct why why = WHY_NONE;
	struct launch own = {
		.context = &job.context,
		.view = &job.broker.view,
		.owner = &job.broker.ticket.owner,
		.program = job.program,
	};
	int r = settings->gpus ? choose_gpus(settings) : 0;

	if (r != 0)
		return r;
	if (broker_join(&job.broker, &job.request, job.user, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	verbose("ticket %llu in '%s'", (unsigned long long)job.broker.number,
		job.context.dir.path);
	if (settings->gpus) {
		r = wait_for_turn(settings);
		if (r != 0)
			return r;
		own.gpus = job.broker.verdict.gpus;
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
	if (r == 0)
		r = broker_survey(&job.broker);
	if (r < 0) {
		diag("cannot use the state in '%s': %s", job.context.dir.path,
			strerror(-r));
		return EXIT_MISUSE;
	}
	make_request(settings);
	around = step_find_lease(&job.broker.view);
	return around ? run_step(settings, around) : run_leased(settings);
}
