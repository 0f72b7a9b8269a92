#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "batch_member.h"
#include "clock.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "explain.h"
#include "parse.h"
#include "queueing.h"
#include "state.h"

/* A job in the background, or between two attempts, leaves a line: other jobs ask how it ended. */
static void leave(struct broker *broker, int status)
{
	if (broker->ticket.request.is_supervised && broker->number)
		ending_tell_leaseless(broker->dir, broker->number, &broker->ticket, 0,
			&(struct ending_facts){ .status = status });
	broker_leave(broker);
}

static int give_up(const struct queueing *queueing)
{
	const struct settings *settings = queueing->context->settings;
	char words[512], waited[DURATION_SIZE];
	struct text text = TEXT_ON(words);

	waiting_line_reason(queueing->line, queueing->broker, &text);
	leave(queueing->broker, EXIT_GAVE_UP);
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

static int obey_cancel(struct broker *broker)
{
	char name[64];
	struct text text = TEXT_ON(name);

	describe_user(broker->cancelled_by, NULL, &text);
	ending_tell_leaseless(broker->dir, broker->number, &broker->ticket, 0,
		&(struct ending_facts){
			.status = 128 + SIGTERM, .how = HISTORY_CANCEL, .by = name });
	broker_leave(broker);
	batch_note_cancel(name);
	note("ticket %llu was cancelled by %s", (unsigned long long)broker_job(broker),
		name);
	return 128 + SIGTERM;
}

int queueing_lose_hope(struct broker *broker)
{
	const struct held *held = &broker->held;

	leave(broker, EXIT_GAVE_UP);
	if (held->status > 0)
		note("gave up: job %llu has ended with status %d",
			(unsigned long long)held->by, held->status);
	else
		note("gave up: how job %llu has ended is not recorded",
			(unsigned long long)held->by);
	return EXIT_GAVE_UP;
}

/*
 * CLOCK_BOOTTIME by which this attempt has to have started.  A job that has once begun at once
 * has done what was asked of it.
 */
static int64_t patience_until_ms(
	const struct settings *settings, const struct ticket *ticket)
{
	int64_t from_ms = max_i64(clock_boot_ms(), ticket->not_before_ms);

	if (settings->immediate && ticket->attempt <= 1)
		return from_ms + settings->immediate_ms;
	return settings->max_wait_ms < 0 ? INT64_MAX : from_ms + settings->max_wait_ms;
}

/* Records that nobody can read are skipped; that they are there is said once. */
static void report_broken(const struct queueing *queueing)
{
	const struct broker *broker = queueing->broker;
	static bool is_told;

	if (is_told || (!broker->view.broken_records && !broker->queue.first_broken))
		return;
	note("some records in '%s' cannot be read and are skipped",
		queueing->context->dir.path);
	is_told = true;
}

/* --- signals ----------------------------------------------------------------------- */

/* Finds the signals that would end this process now. */
static void find_ending(sigset_t *set)
{
	static const int ending[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };
	struct sigaction action;
	sigset_t blocked;

	(void)sigemptyset(set);
	(void)sigprocmask(SIG_SETMASK, NULL, &blocked);
	for (size_t i = 0; i < ARRAY_SIZE(ending); i++)
		if (sigaction(ending[i], NULL, &action) == 0 &&
			action.sa_handler != SIG_IGN && !sigismember(&blocked, ending[i]))
			(void)sigaddset(set, ending[i]);
}

void queueing_hold_signals(struct queueing_signals *signals)
{
	if (signals->are_held)
		return;
	signals->are_held = true;
	find_ending(&signals->set);
	(void)sigprocmask(SIG_BLOCK, &signals->set, &signals->before);
}

void queueing_let_signals(struct queueing_signals *signals)
{
	if (signals->are_held)
		(void)sigprocmask(SIG_SETMASK, &signals->before, NULL);
	signals->are_held = false;
}

/* Ends the job if a signal has come while it waits.  0: none has; else the exit status. */
static int obey_signal(struct broker *broker)
{
	struct signalfd_siginfo info;

	if (broker->signal_fd < 0 ||
		read(broker->signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (broker_read_orders(broker) == BROKER_ORDER_CANCEL)
		return obey_cancel(broker);
	leave(broker, 128 + (int)info.ssi_signo);
	/* the signal itself ends this process, once it is not blocked any more */
	(void)raise((int)info.ssi_signo);
	return 128 + (int)info.ssi_signo;
}

static int wait_in_queue(const struct queueing *queueing)
{
	const struct settings *settings = queueing->context->settings;
	struct broker *broker = queueing->broker;
	int64_t until_ms = patience_until_ms(settings, &broker->ticket);
	bool only_now = settings->immediate && !settings->immediate_ms &&
			broker->ticket.attempt <= 1;

	for (;;) {
		struct why why = WHY_NONE;
		int64_t now_ms = clock_boot_ms(), wake_ms = INT64_MAX;
		int r;

		if (batch_is_recalled()) {
			broker_leave(broker); /* nobody is to hear of it */
			return EXIT_GAVE_UP;
		}
		r = obey_signal(broker);
		if (r != 0)
			return r;
		r = broker_turn(broker, &why);
		report_broken(queueing);
		if (broker->has_rejoined)
			note("the queue in '%s' was replaced; this job is ticket %llu now",
				queueing->context->dir.path,
				(unsigned long long)broker->number);
		if (r == BROKER_GRANTED) {
			state_note_trouble();
			return 0;
		}
		if (r == BROKER_CANCELLED)
			return obey_cancel(broker);
		if (r == BROKER_HOPELESS)
			return queueing_lose_hope(broker);
		if (r < 0) {
			diag("%s", why.text[0] ? why.text : strerror(-r));
			leave(broker, EXIT_MISUSE);
			return EXIT_MISUSE;
		}
		if (r == BROKER_WAITING)
			wake_ms = broker_ending_ms(broker);
		if (wake_ms < INT64_MAX ||
			(r == BROKER_WAITING && only_now && broker_looks_again(broker)))
			r = BROKER_PROBING;
		/* a verdict takes one probe, also for who does not want to wait */
		if (now_ms >= until_ms && !(only_now && r == BROKER_PROBING))
			return give_up(queueing);
		if (r == BROKER_WAITING && !only_now)
			wake_ms = waiting_line_show(
				queueing->line, broker, clock_boot_ms());
		broker->leash_fd = batch_leash();
		r = broker_wait(
			broker, min_i64(wake_ms, only_now ? INT64_MAX : until_ms));
		if (r < 0) {
			diag("cannot wait: %s", strerror(-r));
			leave(broker, EXIT_MISUSE);
			return EXIT_MISUSE;
		}
	}
}

int queueing_wait(const struct queueing *queueing)
{
	struct broker *broker = queueing->broker;
	int r;

	/* a job without a parent has no line to write: signals may end the process at once */
	if (!broker->ticket.request.is_supervised)
		return wait_in_queue(queueing);
	queueing_hold_signals(queueing->signals);
	broker->signal_fd =
		signalfd(-1, &queueing->signals->set, SFD_CLOEXEC | SFD_NONBLOCK);
	r = wait_in_queue(queueing);
	close_fd(&broker->signal_fd);
	queueing_let_signals(queueing->signals);
	return r;
}
