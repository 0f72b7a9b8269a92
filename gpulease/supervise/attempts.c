#include <errno.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "attempts.h"
#include "background.h"
#include "clock.h"
#include "diag.h"
#include "end_record.h"
#include "exitcodes.h"
#include "fdio.h"
#include "notifier.h"
#include "output_oom.h"
#include "privacy.h"
#include "privilege.h"
#include "report.h"
#include "request.h"
#include "session.h"
#include "shared_state.h"
#include "supervise.h"

enum {
	LOCK_MS = 1000, /* the longest wait for a locked lease file */
	REPORT_SIZE = 16 * 1024,
	BY_SIZE = 64,
};

/* The current attempt; ->care and ->request carry over to the next one. */
struct attempt {
	const struct attempts *all;
	struct request request;
	struct retry_policy care;
	struct sampler sampler;
	struct output_mark output;
	struct redirection redirection;
	struct attempt_end end;
	enum retry_next next;
	uint32_t number; /* of the attempt, as in its ticket */
	int64_t delay_ms, waited_ms;
	bool log_is_full; /* a report could not be written */
	const char *
		unsaid; /* the rest of the last report, for report_later(); NULL: nothing */
};

/* --- reporting an end -------------------------------------------------------------- */

/* Returns the value of `how=` in the history: why the attempt has ended. */
static const char *attempt_how(const struct attempt *at)
{
	bool is_oom = at->end.is_oom && at->end.cause == CAUSE_ITSELF;

	return end_cause_word(is_oom ? CAUSE_OOM : at->end.cause);
}

/*
 * Records the end of an attempt without GPUs, which has no lease.  The broker may have the job's
 * next ticket already, so the fields of this attempt's ticket are restored.
 */
static void attempt_record_leaseless(const struct attempt *at, struct broker *broker,
	int64_t gone_ms, const struct end_facts *facts)
{
	int64_t since_ms = gone_ms - at->end.ran_ms;
	struct ticket ticket = broker->ticket;

	ticket.attempt = at->number;
	ticket.since_ms = since_ms - at->waited_ms;
	end_record_append_leaseless(
		broker->dir, broker->number, &ticket, since_ms, facts);
}

/* Writes the name of the user who cancelled the attempt; "" if it was not cancelled. */
static void attempt_name_canceller(const struct attempt *at, char by[BY_SIZE])
{
	struct text name = text_on(by, BY_SIZE);

	if (at->end.cause == CAUSE_CANCEL)
		describe_user(at->end.by, NULL, &name);
}

/*
 * Records the end of the attempt in the history.  Its lease still exists; it is given back later.
 */
static void attempt_record(
	const struct attempt *at, struct broker *broker, const struct launch *launch)
{
	int64_t gone_ms = clock_boot_ms();
	struct end_facts facts = {
		.status = attempt_exit_status(&at->end),
		.how = attempt_how(at),
		.log_is_full = at->log_is_full,
		.use = at->end.use,
	};
	char names[64], by[BY_SIZE];
	struct end_recorder recorder;

	attempt_name_canceller(at, by);
	facts.by = by;
	if (at->end.cause == CAUSE_PREEMPT && !at->end.preempted_by)
		facts.by = HISTORY_BY_WINDOW;
	sampler_describe(&at->sampler, at->end.ran_ms, &facts);
	if (gpuset_is_empty(&launch->gpus)) {
		attempt_record_leaseless(at, broker, gone_ms, &facts);
		return;
	}
	end_record_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	if (end_recorder_open(broker->dir, &launch->gpus, names, launch->owner->token,
		    &recorder) < 0)
		return;
	(void)!end_recorder_write(&recorder, gone_ms, &facts, gone_ms + LOCK_MS);
	end_recorder_release(&recorder);
	shared_state_note_history_error();
}

/* Tells the notifier that the job has ended. */
static void attempt_tell_end(const struct attempt *at, const struct broker *broker)
{
	char by[BY_SIZE];

	attempt_name_canceller(at, by);
	notifier_ended(broker_job(broker), clock_boot_ms(),
		&(struct end_facts){ .status = attempt_exit_status(&at->end),
			.how = attempt_how(at),
			.by = by });
}

/* Tells the observer, if there is one, that the attempt has ended. */
static void attempt_notify(const struct attempt *at, const struct job_observer *observer)
{
	char by[BY_SIZE];
	struct attempt_news news = {
		.end = &at->end,
		.sampler = &at->sampler,
		.next = at->next,
		.delay_ms = at->delay_ms,
		.next_mib = at->care.vram_mib,
		.by = by,
	};

	if (!observer)
		return;
	attempt_name_canceller(at, by);
	observer->attempt_ended(observer->context, &news);
}

/*
 * Writes the report of --report to stderr; a background job always has one, in its log.  If stderr
 * is a full pipe, the lines that are left of the last report are for report_later(); those of an
 * earlier one are lost.
 */
static void attempt_report(struct attempt *at, const struct broker *broker)
{
	static char lines[REPORT_SIZE];
	struct text text = TEXT_ON(lines);
	const struct settings *settings = at->all->queueing->context->settings;
	/*
	 * the log of a job script has what Slurm writes there, too: who has cancelled it, and that
	 * it was requeued
	 */
	bool is_plain = settings->environment.shown != NULL,
	     is_told = at->end.cause == CAUSE_CANCEL || at->end.cause == CAUSE_REQUEUE;
	char by[BY_SIZE];
	struct report report = {
		.job = broker_job(broker),
		.attempt = broker->ticket.attempt,
		.name = broker->ticket.request.name,
		.end = at->end,
		.by = by,
		.next = at->next,
		.next_delay_ms = at->delay_ms,
		.next_vram_mib = at->care.vram_mib,
		.waited_ms = at->waited_ms,
		.gpu_count = gpuset_count(&at->all->launch->gpus),
		.need = at->all->launch->need,
		.sampler = &at->sampler,
		.log_is_full = at->log_is_full, /* an earlier report was lost */
	};
	int r;

	if (settings->environment.is_standin ||
		(!settings->output.report &&
			(!settings->environment.submit || (is_plain && !is_told))))
		return;
	attempt_name_canceller(at, by);
	report_write(&report, &text);
	if (is_plain)
		lines[strcspn(lines, "\n")] = '\0';
	at->unsaid = lines;
	r = note_lines(&at->unsaid);
	if (r != -EAGAIN || at->next != RETRY_NEXT_NOTHING)
		at->unsaid = NULL;
	at->log_is_full = r < 0 && !at->unsaid;
}

/*
 * Leaves the rest of the report to a child, which waits for the reader of stderr and holds nothing
 * of the lease.  The lease ends with this process.
 */
static void report_later(const char *unsaid)
{
	if (!unsaid || fork() != 0)
		return;
	fdio_close_from(STDERR_FILENO + 1);
	(void)close(STDOUT_FILENO); /* its reader waits for the end of the job's output */
	diag_hurry(-1);
	if (privilege_drop() == 0)
		(void)!note_lines(&unsaid);
	_exit(EXIT_DONE);
}

/* --- one attempt ------------------------------------------------------------------- */

/* Fills in the owner, GPUs, FIFO and files of this attempt. */
static void attempt_fill_launch(
	struct attempt *at, struct launch *launch, const struct broker *broker)
{
	launch->owner = &broker->ticket.owner;
	launch->ticket = broker_job(broker);
	launch->attempt = broker->ticket.attempt;
	launch->gpus = GPUSET_NONE;
	if (broker->ticket.request.gpus) {
		launch->gpus = broker->result.verdict.gpus;
		launch->need = request_need(&broker->ticket.request);
	}
	launch->live_fd = broker->live_fd;
	launch->is_supervised = true;
	launch->redirection = &at->redirection;
}

static bool is_regular_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

int attempts_check(const struct settings *settings)
{
	if (!settings->care.oom_retries || settings->environment.submit ||
		settings->output.out || settings->output.err ||
		is_regular_file(STDOUT_FILENO) || is_regular_file(STDERR_FILENO))
		return 0;
	diag("--oom-retries needs the output in a file: add -o FILE, or --submit");
	return EXIT_MISUSE;
}

/*
 * Opens the files of -o, -e and -i once for all attempts, so that a later attempt appends to the
 * output of an earlier one.  Marks where the output ends, if attempt_run() is to search later
 * output for out-of-memory errors.  Returns 0 or an exit status.
 */
static int attempt_open_output(
	struct attempt *at, const struct attempts *attempts, struct broker *broker)
{
	const struct settings *settings = attempts->queueing->context->settings;
	int out, err, r = 0;

	at->redirection = REDIRECTION_NONE;
	if (!attempts->keeps_output)
		r = redirect_open(attempts->queueing->context, broker_job(broker),
			&at->redirection);
	if (r < 0 || !(settings->care.oom_retries || settings->output.report ||
			     settings->environment.submit))
		return r < 0 ? EXIT_MISUSE : 0;
	out = at->redirection.fds[STDOUT_FILENO];
	err = at->redirection.fds[STDERR_FILENO];
	r = output_mark(out < 0 ? background_log(STDOUT_FILENO) : out,
		err < 0 ? background_log(STDERR_FILENO) : err, &at->output);
	if (r < 0 && settings->care.oom_retries)
		note("--oom-retries has no effect: the output goes to no file that can be "
		     "read");
	return 0;
}

/*
 * Sets the input of -i to its beginning.  All attempts share one open file, and the last one has
 * read it.  For a pipe this has no effect.
 */
static void attempt_rewind_input(
	const struct attempt *at, const struct output_settings *output)
{
	int in = at->redirection.fds[STDIN_FILENO];

	if (output->in)
		(void)lseek(in < 0 ? STDIN_FILENO : in, 0, SEEK_SET);
}

/* Returns the GPUs to sample: none unless an option needs samples or the job declared memory. */
static struct gpuset attempt_sampled_gpus(
	const struct settings *settings, const struct broker *broker)
{
	bool is_wanted = settings->output.report || settings->environment.submit ||
			 settings->care.oom_retries || broker->ticket.request.vram_mib;

	return is_wanted && broker->ticket.request.gpus ? broker->result.verdict.gpus
							: GPUSET_NONE;
}

/* Begins an attempt after its ticket was granted; ->turn_ms of the ticket is when. */
static void attempt_begin(
	struct attempt *at, const struct broker *broker, struct launch *launch)
{
	attempt_fill_launch(at, launch, broker);
	at->number = broker->ticket.attempt;
	at->waited_ms = broker->ticket.turn_ms - broker->ticket.since_ms;
}

/* The command could not be started: records @status in the history and returns it. */
static int attempt_give_up(struct attempt *at, struct broker *broker,
	const struct launch *launch, int status)
{
	at->end = (struct attempt_end){ .wait_status = status << 8 }; /* as of wait(2) */
	attempt_record(at, broker, launch);
	attempt_tell_end(at, broker);
	return status;
}

/*
 * Runs the command once and decides what comes next.  Returns 0, or an exit status if the command
 * could not be started; that end is recorded.
 */
static int attempt_run(struct attempt *at, struct broker *broker, struct launch *launch)
{
	const struct job_observer *observer = at->all->queueing->observer;
	const struct context *context = at->all->queueing->context;
	const struct settings *settings = context->settings;
	static struct use_words use;
	struct supervision supervision = {
		.launch = launch,
		.broker = broker,
		.sampler = &at->sampler,
		.use = gpuset_is_empty(&launch->gpus) ? NULL : &use,
		.use_interval_ms = context->config.idle_interval_ms,
		.observer = observer,
		.limit_ms = broker->ticket.request.limit_ms,
		.grace_ms = settings->care.grace_ms,
		.warn_signal = settings->care.warn_signal,
		.warn_ms = settings->care.warn_ms,
		.warns_steps = settings->care.warns_steps,
		.is_sent_back = settings->care.on_limit == ON_LIMIT_REQUEUE,
		.done_status = settings->care.done_status,
	};
	struct gpuset sampled = attempt_sampled_gpus(settings, broker);
	uint32_t chance = 0; /* spreads the delays of jobs that failed together */
	int r;

	use_words_make(context, broker_job(broker), &use);
	supervision.waited_ms = at->waited_ms;
	output_mark_again(&at->output);
	attempt_rewind_input(at, &settings->output);
	sampler_begin(&at->sampler, broker, launch->owner->token, &sampled,
		broker->ticket.request.vram_mib, &context->config);
	notifier_started(broker_job(broker), &broker->view, &launch->gpus);
	r = supervise(&supervision, &at->end);
	/* until the end is recorded, and also while the job waits in the queue again */
	queueing_hold_signals(at->all->queueing->signals);
	if (r < 0 && r != -ECANCELED)
		diag("cannot start the command: %s", strerror(-r));
	if (r < 0)
		return attempt_give_up(
			at, broker, launch, r == -ECANCELED ? EXIT_GAVE_UP : EXIT_MISUSE);
	at->end.peak_mib = sampler_peak_mib(&at->sampler);
	/* from here on, the log has the output of the attempt */
	(void)session_flush();
	at->end.is_oom = at->end.wait_status != 0 && output_says_oom(&at->output);
	(void)!getrandom(&chance, sizeof(chance), GRND_NONBLOCK);
	at->next = retry_policy_apply(&at->care, &at->end, chance, &at->delay_ms);
	if (observer && observer->is_stopped(observer->context)) {
		at->next = RETRY_NEXT_NOTHING;
		/* it does not come back, and what it has left undone is no success */
		if (at->end.cause == CAUSE_REQUEUE) {
			at->end.cause = CAUSE_CANCEL;
			at->end.by = getuid();
		}
	}
	/* no process of this attempt may live on when the next one starts */
	if (at->next != RETRY_NEXT_NOTHING)
		supervise_end_leftovers(&supervision);
	return 0;
}

/*
 * Empties the log of a job script before its next attempt, unless --open-mode says to append: so
 * does Slurm.
 */
static void attempt_empty_log(const struct settings *settings)
{
	if (!settings->environment.shown || settings->output.append)
		return;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
		if (is_regular_file(fd))
			(void)!ftruncate(fd, 0);
}

/* --- from one to the next ---------------------------------------------------------- */

/*
 * After a try to take the next ticket that has failed, as on a full disk: waits for @pause_ms.
 * Returns false if the job is not to try again, because of a signal, a cancel, or @until_ms.
 */
static bool attempt_pause(const struct attempt *at, struct broker *broker,
	int64_t pause_ms, int64_t until_ms)
{
	const sigset_t *ending = &at->all->queueing->signals->set;
	const struct timespec span = { .tv_sec = pause_ms / 1000,
		.tv_nsec = pause_ms % 1000 * 1000000 };
	int signal = sigtimedwait(ending, NULL, &span);

	/* it is blocked still, and ends this process once its end is recorded */
	if (signal > 0)
		(void)raise(signal);
	return signal <= 0 && broker_read_orders(broker) != BROKER_ORDER_CANCEL &&
	       clock_boot_ms() < until_ms;
}

/*
 * Takes the next ticket.  No errno ends the job: it tries again after 0.1 s, 0.2 s … 30 s, and
 * keeps its lease until then, so a time limit ends this.  Returns 0 or a negative errno.
 */
static int attempt_take_ticket(
	const struct attempt *at, struct broker *broker, int64_t not_before_ms)
{
	int64_t limit_ms = broker->ticket.request.limit_ms, until_ms = INT64_MAX;
	struct why why = WHY_NONE;
	int r;

	if (limit_ms)
		until_ms = clock_boot_ms() + max_i64(0, limit_ms - at->end.ran_ms);
	for (int64_t pause_ms = 100;; pause_ms = min_i64(2 * pause_ms, 30000)) {
		r = broker_requeue(broker, &at->request, not_before_ms, &why);
		if (r == 0)
			return 0;
		if (pause_ms == 100)
			note("job %llu waits for its next ticket: %s",
				(unsigned long long)broker_job(broker), why.text);
		if (!attempt_pause(at, broker, pause_ms, until_ms))
			break;
	}
	diag("cannot try again: %s", why.text);
	return r;
}

/*
 * Takes the job's next ticket, records the end of this attempt, and gives its lease back, in this
 * order: other processes find the job in the queue or with a lease at every moment.  Returns 0, or
 * a negative errno if there is no ticket; the lease then stays.
 */
static int attempt_requeue(
	struct attempt *at, struct broker *broker, const struct launch *launch)
{
	struct owner before = *launch->owner;
	struct launch ended = *launch;
	int64_t not_before_ms = at->delay_ms ? clock_boot_ms() + at->delay_ms : 0;
	int r;

	at->request.vram_mib = at->care.vram_mib;
	/* broker_requeue() changes the owner's token; the lease to record has the old one */
	ended.owner = &before;
	r = attempt_take_ticket(at, broker, not_before_ms);
	if (r < 0)
		return r;
	attempt_record(at, broker, &ended);
	notifier_tell(
		at->end.cause == CAUSE_PREEMPT ? NOTIFIER_PREEMPTED : NOTIFIER_REQUEUED,
		broker_job(broker), (int64_t)at->end.preempted_by, "");
	(void)broker_give_back(
		broker); /* if a lease file is locked, the next turn does it */
	return 0;
}

/*
 * Makes this attempt the last one, because no other can be queued.  A status of 0 would look as if
 * the job had succeeded, so it becomes EXIT_MISUSE.
 */
static void attempt_fail(struct attempt *at)
{
	at->end.cause = CAUSE_ITSELF;
	if (attempt_exit_status(&at->end) == 0)
		at->end.wait_status = EXIT_MISUSE << 8; /* as of wait(2) */
}

/*
 * Returns the most memory that the job can declare on each GPU: the size, less the margin, of the
 * smallest of the n largest GPUs that it may have; 0: unknown.
 */
static uint64_t largest_vram_mib(
	const struct snapshot *view, const struct request *request, uint64_t margin_mib)
{
	uint64_t largest[GPUSET_MAX];
	unsigned count = 0;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct snapshot_gpu *gpu = &view->gpus[slot];
		uint64_t mib = gpu->file.gpu.total_mib;
		unsigned at = count;

		if (!gpu->exists || gpu->file.gpu.has_mig ||
			!gpuset_has(&request->allow, slot))
			continue;
		/* insertion sort, the largest first */
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

/* Sets up the first attempt. */
static void attempt_init(struct attempt *at, const struct attempts *attempts)
{
	const struct context *context = attempts->queueing->context;
	const struct run_care *care = &context->settings->care;
	struct need need = request_need(attempts->request);

	at->all = attempts;
	at->request = *attempts->request;
	/* --after and --after-ok are met for good: later attempts do not depend on these jobs */
	at->request.after[0] = at->request.after_ok[0] = '\0';
	at->output = OUTPUT_MARK_NONE;
	at->care = (struct retry_policy){
		.retries = care->retries,
		.oom_retries = care->oom_retries,
		.requeues = care->max_requeues,
		.on_limit = care->on_limit,
		.delay_ms = context->config.retry_delay_ms,
		.delay_max_ms = context->config.retry_delay_max_ms,
		.is_sharing = !need_is_whole(&need),
		.vram_mib = attempts->request->vram_mib,
		.vram_max_mib = largest_vram_mib(&attempts->queueing->broker->view,
			attempts->request, context->usage.margin_mib),
	};
}

/* Returns the time that the job's limit leaves to what the command has started; 0: no limit. */
static int64_t attempt_left_ms(const struct attempt *at, const struct broker *broker)
{
	int64_t limit_ms = broker->ticket.request.limit_ms;

	return limit_ms ? max_i64(1, limit_ms - at->end.ran_ms) : 0;
}

int attempts_run(const struct attempts *attempts)
{
	static struct attempt attempt; /* too big for the stack */
	const struct job_observer *observer = attempts->queueing->observer;
	struct broker *broker = attempts->queueing->broker;
	int r;

	attempt_init(&attempt, attempts);
	attempt_begin(&attempt, broker, attempts->launch);
	r = attempt_open_output(&attempt, attempts, broker);
	if (r != 0)
		return attempt_give_up(&attempt, broker, attempts->launch, r);
	supervise_prepare();
	for (;;) {
		/* with a lease, no message may block on a slow stderr */
		diag_hurry(DIAG_HURRY_MS);
		r = attempt_run(&attempt, broker, attempts->launch);
		if (r != 0)
			return r;
		attempt_report(&attempt, broker);
		/* the log has the report before the end is announced */
		attempt.log_is_full |= !session_flush();
		attempt_notify(&attempt, observer);
		if (attempt.next == RETRY_NEXT_NOTHING)
			break;
		if (attempt_requeue(&attempt, broker, attempts->launch) < 0) {
			attempt_fail(&attempt);
			break;
		}
		r = queueing_wait(attempts->queueing);
		if (r != 0)
			return r;
		attempt_empty_log(attempts->queueing->context->settings);
		attempt_begin(&attempt, broker, attempts->launch);
	}
	broker_remove_bell(broker);
	attempt_record(&attempt, broker, attempts->launch);
	attempt_tell_end(&attempt, broker);
	/* an nvidia-smi that hangs would outlive this process */
	prober_release(&broker->prober);
	if (observer)
		observer->ended(observer->context);
	/*
	 * the lease ends with this process; if the command has left processes, a witness keeps it
	 * for readers that cannot see them
	 */
	attempts->launch->live_fd = broker->live_fd; /* -1: the teardown has closed it */
	launch_witness(attempts->launch, attempt_left_ms(&attempt, broker));
	queueing_release_signals(attempts->queueing->signals);
	report_later(attempt.unsaid);
	return supervise_exit_like(&attempt.end);
}
