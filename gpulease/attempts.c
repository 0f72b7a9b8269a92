#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "attempts.h"
#include "batch_member.h"
#include "clock.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "explain.h"
#include "output.h"
#include "report.h"
#include "request.h"
#include "state.h"
#include "supervise.h"

enum {
	LOCK_MS = 1000, /* a process that has a lease file locked may be stopped */
	REPORT_SIZE = 16 * 1024,
	BY_SIZE = 64,
};

/* One attempt, and what is known of it. */
struct attempt {
	const struct attempts *all;
	struct request request;
	struct care care;
	struct sampler sampler;
	struct output_mark output;
	struct redirection redirection;
	struct attempt_end end;
	enum care_next next;
	uint32_t number; /* as in its ticket */
	int64_t delay_ms, waited_ms;
	bool log_is_full;
};

static struct attempt attempt; /* too big for the stack */

/* --- what is told of an end -------------------------------------------------------- */

static const char *how_it_ended(const struct attempt *at)
{
	static const char *const hows[] = {
		[CAUSE_ITSELF] = "",
		[CAUSE_LIMIT] = HISTORY_LIMIT,
		[CAUSE_CANCEL] = HISTORY_CANCEL,
		[CAUSE_PREEMPT] = HISTORY_PREEMPT,
	};

	return at->end.is_oom && at->end.cause == CAUSE_ITSELF ? HISTORY_OOM
							       : hows[at->end.cause];
}

/* A job without GPUs has no lease; its next ticket may be taken already. */
static void tell_leaseless(
	struct broker *broker, int64_t gone_ms, const struct ending_facts *facts)
{
	int64_t since_ms = gone_ms - attempt.end.ran_ms;
	struct ticket ticket = broker->ticket;

	ticket.attempt = attempt.number;
	ticket.since_ms = since_ms - attempt.waited_ms;
	ending_tell_leaseless(broker->dir, broker->number, &ticket, since_ms, facts);
}

/* Who has cancelled it, where somebody has. */
static void name_canceller(char by[BY_SIZE])
{
	struct text who = text_on(by, BY_SIZE);

	if (attempt.end.cause == CAUSE_CANCEL)
		describe_user(attempt.end.by, NULL, &who);
}

/* In the history, of the lease with @token, which stands until it is given back. */
static void tell(struct broker *broker, const struct launch *launch)
{
	int64_t gone_ms = clock_boot_ms();
	struct ending_facts facts = {
		.status = care_exit_status(&attempt.end),
		.how = how_it_ended(&attempt),
		.log_is_full = attempt.log_is_full,
	};
	char names[64], by[BY_SIZE];
	struct ending ending;

	name_canceller(by);
	facts.by = by;
	sampler_describe(&attempt.sampler, &facts);
	if (gpuset_is_empty(&launch->gpus)) {
		tell_leaseless(broker, gone_ms, &facts);
		return;
	}
	ending_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	if (ending_open(
		    broker->dir, &launch->gpus, names, launch->owner->token, &ending) < 0)
		return;
	(void)!ending_record_open(&ending, gone_ms, &facts, gone_ms + LOCK_MS);
	ending_release(&ending);
	state_note_trouble();
}

static void tell_batch(void)
{
	char by[BY_SIZE];

	name_canceller(by);
	batch_tell_attempt(&(struct batch_attempt){
		.end = &attempt.end,
		.sampler = &attempt.sampler,
		.next = attempt.next,
		.delay_ms = attempt.delay_ms,
		.next_mib = attempt.care.vram_mib,
		.by = by,
	});
}

/* On stderr, which is the log of a background job. */
static void report(const struct broker *broker)
{
	static char lines[REPORT_SIZE];
	struct text text = TEXT_ON(lines);
	const struct settings *settings = attempt.all->queueing->context->settings;
	char by[BY_SIZE];
	struct report report = {
		.job = broker_job(broker),
		.attempt = broker->ticket.attempt,
		.name = broker->ticket.request.name,
		.end = attempt.end,
		.by = by,
		.preempted_by = broker->preempted_by,
		.next = attempt.next,
		.next_delay_ms = attempt.delay_ms,
		.next_vram_mib = attempt.care.vram_mib,
		.waited_ms = attempt.waited_ms,
		.gpu_count = gpuset_count(&attempt.all->launch->gpus),
		.need = attempt.all->launch->need,
		.sampler = &attempt.sampler,
		.log_is_full = attempt.log_is_full, /* an earlier report was lost */
	};

	if (!settings->report && !settings->submit)
		return;
	name_canceller(by);
	report_write(&report, &text);
	attempt.log_is_full = !note_lines(lines);
}

/* --- one attempt ------------------------------------------------------------------- */

static void fill_launch(struct launch *launch, const struct broker *broker)
{
	launch->owner = &broker->ticket.owner;
	launch->ticket = broker_job(broker);
	launch->attempt = broker->ticket.attempt;
	launch->gpus = GPUSET_NONE;
	if (broker->ticket.request.gpus) {
		launch->gpus = broker->verdict.gpus;
		launch->need = request_need(&broker->ticket.request);
	}
	launch->live_fd = broker->live_fd;
	launch->is_supervised = true;
	launch->redirection = &attempt.redirection;
}

static bool is_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int attempts_check(const struct settings *settings)
{
	if (!settings->oom_retries || settings->submit || settings->output ||
		settings->error || is_file(STDOUT_FILENO) || is_file(STDERR_FILENO))
		return 0;
	diag("--oom-retries needs the output in a file: add -o FILE, or --submit");
	return EXIT_MISUSE;
}

/* Where its output goes, or goes already; emptied before the first attempt alone. */
static int open_output(const struct attempts *attempts, struct broker *broker)
{
	const struct settings *settings = attempts->queueing->context->settings;
	int out, err, r = 0;

	attempt.redirection = REDIRECTION_NONE;
	if (!attempts->keeps_output)
		r = redirect_open(attempts->queueing->context, broker_job(broker),
			&attempt.redirection);
	if (r < 0 || !(settings->oom_retries || settings->report || settings->submit))
		return r < 0 ? EXIT_MISUSE : 0;
	out = attempt.redirection.fds[STDOUT_FILENO];
	err = attempt.redirection.fds[STDERR_FILENO];
	r = output_mark(out < 0 ? STDOUT_FILENO : out, err < 0 ? STDERR_FILENO : err,
		&attempt.output);
	if (r < 0 && settings->oom_retries)
		note("the output goes to no file that can be read: --oom-retries has no "
		     "effect");
	return 0;
}

/* An attempt before has read it, and all of them share its offset; a pipe has none. */
static void rewind_input(const struct settings *settings)
{
	int in = attempt.redirection.fds[STDIN_FILENO];

	if (settings->input)
		(void)lseek(in < 0 ? STDIN_FILENO : in, 0, SEEK_SET);
}

/* The GPUs that are looked at: what is asked for has to need it. */
static struct gpuset sampled(const struct settings *settings, const struct broker *broker)
{
	bool is_wanted = settings->report || settings->submit || settings->oom_retries ||
			 broker->ticket.request.vram_mib;

	return is_wanted && broker->ticket.request.gpus ? broker->verdict.gpus
							: GPUSET_NONE;
}

/* It was granted in the last turn, which is noted in its ticket. */
static void begin_attempt(const struct broker *broker, struct launch *launch)
{
	fill_launch(launch, broker);
	attempt.number = broker->ticket.attempt;
	attempt.waited_ms = broker->ticket.turn_ms - broker->ticket.since_ms;
}

/* The command has never begun; the history has the status that says why. */
static int give_up(struct broker *broker, const struct launch *launch, int status)
{
	attempt.end = (struct attempt_end){ .wait_status = status << 8 }; /* wait(2) */
	tell(broker, launch);
	return status;
}

static int run_once(struct broker *broker, struct launch *launch)
{
	const struct context *context = attempt.all->queueing->context;
	const struct settings *settings = context->settings;
	struct supervision supervision = {
		.launch = launch,
		.broker = broker,
		.sampler = &attempt.sampler,
		.limit_ms = broker->ticket.request.limit_ms,
		.grace_ms = settings->grace_ms,
		.warn_signal = settings->warn_signal,
		.warn_ms = settings->warn_ms,
		.is_sent_back = settings->on_limit == ON_LIMIT_REQUEUE,
		.done_status = settings->done_status,
	};
	struct gpuset looked_at = sampled(settings, broker);
	uint32_t chance = 0;
	int r;

	supervision.waited_ms = attempt.waited_ms;
	output_mark_again(&attempt.output);
	rewind_input(settings);
	sampler_begin(&attempt.sampler, broker, launch->owner->token, &looked_at,
		broker->ticket.request.vram_mib, context->config.tolerance_percent);
	diag_hurry(true);
	r = supervise(&supervision, &attempt.end);
	diag_hurry(false);
	/* held until the end is told, and then while the job waits in the queue */
	queueing_hold_signals(attempt.all->queueing->signals);
	if (r < 0 && r != -ECANCELED)
		diag("cannot start the command: %s", strerror(-r));
	if (r < 0)
		return give_up(
			broker, launch, r == -ECANCELED ? EXIT_GAVE_UP : EXIT_MISUSE);
	attempt.end.peak_mib = sampler_peak_mib(&attempt.sampler);
	attempt.end.is_oom =
		attempt.end.wait_status != 0 && output_says_oom(&attempt.output);
	(void)!getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
	attempt.next = care_after(&attempt.care, &attempt.end, chance, &attempt.delay_ms);
	if (batch_is_stopped())
		attempt.next = CARE_DONE;
	if (attempt.next != CARE_DONE)
		supervise_sweep(&supervision);
	return 0;
}

/* --- from one to the next ---------------------------------------------------------- */

/* Back into the queue first, so that the job is always there; then its GPUs are given back. */
static int go_back(struct broker *broker, const struct launch *launch)
{
	struct owner before = *launch->owner;
	struct launch told = *launch;
	struct why why = WHY_NONE;
	int64_t not_before_ms = attempt.delay_ms ? clock_boot_ms() + attempt.delay_ms : 0;
	int r;

	attempt.request.vram_mib = attempt.care.vram_mib;
	told.owner = &before;
	r = broker_requeue(broker, &attempt.request, not_before_ms, &why);
	if (r < 0) {
		diag("cannot try again: %s", why.text);
		return r;
	}
	tell(broker, &told);
	(void)broker_give_back(broker); /* where that cannot be yet, the next turn does */
	return 0;
}

/* For a job that was to go on and cannot: its last status, perhaps 0, is no success of the job. */
static void fail_for_good(void)
{
	attempt.end.cause = CAUSE_ITSELF;
	if (care_exit_status(&attempt.end) == 0)
		attempt.end.wait_status = EXIT_MISUSE << 8; /* wait(2) */
}

/* The most memory that the job can declare: on the smallest of the best GPUs it may have. */
static uint64_t most_vram(const struct snapshot *view, const struct request *request)
{
	uint64_t largest[GPUSET_MAX], margin_mib = view->usage.margin_mib;
	unsigned count = 0;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];
		uint64_t mib = gpu->file.gpu.total_mib;
		unsigned at = count;

		if (!gpu->exists || gpu->file.gpu.has_mig ||
			!gpuset_has(&request->allow, slot))
			continue;
		for (; at > 0 && largest[at - 1] < mib; at--)
			largest[at] = largest[at - 1];
		largest[at] = mib;
		count++;
	}
	if (!request->gpus || count < request->gpus)
		return 0;
	return largest[request->gpus - 1] > margin_mib
		       ? largest[request->gpus - 1] - margin_mib
		       : 0;
}

static void begin(const struct attempts *attempts)
{
	const struct context *context = attempts->queueing->context;
	const struct settings *settings = context->settings;
	struct need need = request_need(attempts->request);

	attempt.all = attempts;
	attempt.request = *attempts->request;
	/* what it was to come after has ended once and for all */
	attempt.request.after[0] = attempt.request.after_ok[0] = '\0';
	attempt.output = OUTPUT_MARK_NONE;
	attempt.care = (struct care){
		.retries = settings->retries,
		.oom_retries = settings->oom_retries,
		.requeues = settings->max_requeues,
		.on_limit = settings->on_limit,
		.delay_ms = context->config.retry_delay_ms,
		.delay_max_ms = context->config.retry_delay_max_ms,
		.is_sharing = !need_is_whole(&need),
		.vram_mib = attempts->request->vram_mib,
		.vram_max_mib =
			most_vram(&attempts->queueing->broker->view, attempts->request),
	};
}

int attempts_run(const struct attempts *attempts)
{
	struct broker *broker = attempts->queueing->broker;
	int r;

	begin(attempts);
	begin_attempt(broker, attempts->launch);
	r = open_output(attempts, broker);
	if (r != 0)
		return give_up(broker, attempts->launch, r);
	supervise_prepare();
	for (;;) {
		r = run_once(broker, attempts->launch);
		if (r != 0)
			return r;
		report(broker);
		tell_batch();
		if (attempt.next == CARE_DONE)
			break;
		if (go_back(broker, attempts->launch) < 0) {
			fail_for_good();
			break;
		}
		r = queueing_wait(attempts->queueing);
		if (r != 0)
			return r;
		begin_attempt(broker, attempts->launch);
	}
	tell(broker, attempts->launch);
	batch_tell_no_other();
	attempts->launch->live_fd = broker->live_fd; /* if it was not given up */
	launch_witness(attempts->launch);
	queueing_let_signals(attempts->queueing->signals);
	return supervise_end_as(&attempt.end);
}
