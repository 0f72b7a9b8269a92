#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "clock.h"
#include "diag.h"
#include "end_record.h"
#include "exitcodes.h"
#include "notifier.h"
#include "parse.h"
#include "privacy.h"
#include "queueing.h"
#include "shared_state.h"
#include "unknown_status.h"

/*
 * Gives the ticket up.  A supervised job (in the background, or between two attempts) gets a line
 * in the history first: other jobs and --wait-for ask how it ended.
 */
static void leave_queue(struct broker *broker, int status)
{
	const struct end_facts facts = { .status = status };

	if (broker->ticket.request.is_supervised && broker->number)
		end_record_append_leaseless(
			broker->dir, broker->number, &broker->ticket, 0, &facts);
	notifier_ended(broker_job(broker), clock_boot_ms(), &facts);
	broker_leave(broker);
}

/* Leaves the queue because the time of --immediate or --max-wait is over; returns the status. */
static int queueing_give_up(const struct queueing *queueing)
{
	const struct run_request *request = &queueing->context->settings->request;
	char words[512], waited[DURATION_SIZE];
	struct text text = TEXT_ON(words);

	waiting_line_reason(queueing->line, queueing->broker, &text);
	leave_queue(queueing->broker, EXIT_GAVE_UP);
	if (request->immediate && !request->immediate_ms) {
		note("not available at once: %s", words);
	} else {
		format_duration(
			request->immediate ? request->immediate_ms : request->max_wait_ms,
			waited);
		note("gave up after %s: %s", waited, words);
	}
	return EXIT_GAVE_UP;
}

/* Leaves the queue because the job was cancelled.  Returns the exit status. */
static int queueing_obey_cancel(const struct queueing *queueing)
{
	const struct job_observer *observer = queueing->observer;
	struct broker *broker = queueing->broker;
	char name[64];
	struct text text = TEXT_ON(name);
	const struct end_facts facts = {
		.status = 128 + SIGTERM, .how = HISTORY_CANCEL, .by = name
	};

	describe_user(broker->result.cancelled_by, NULL, &text);
	end_record_append_leaseless(
		broker->dir, broker->number, &broker->ticket, 0, &facts);
	notifier_ended(broker_job(broker), clock_boot_ms(), &facts);
	broker_leave(broker);
	if (observer)
		observer->cancelled(observer->context, name);
	note("job %llu was cancelled by %s", (unsigned long long)broker_job(broker),
		name);
	return 128 + SIGTERM;
}

int queueing_dependency_failed(struct broker *broker)
{
	const struct dependency_verdict *held = &broker->result.held;

	leave_queue(broker, EXIT_GAVE_UP);
	if (held->status > 0)
		note("gave up: job %llu has ended with status %d",
			(unsigned long long)held->by, held->status);
	else if (lost_words(held->cause))
		note("gave up: job %llu %s", (unsigned long long)held->by,
			lost_words(held->cause));
	else
		note("gave up: the exit status of job %llu is not recorded: %s",
			(unsigned long long)held->by, unknown_status_remedy());
	return EXIT_GAVE_UP;
}

/*
 * Returns the time (CLOCK_BOOTTIME) by which this attempt has to start; INT64_MAX: no bound, or it
 * is not released yet.  The time counts from the moment at which it may start.  --immediate binds
 * only the first attempt: a job that has started at once may wait for its next attempt.
 */
static int64_t patience_until_ms(
	const struct run_request *request, const struct ticket *ticket)
{
	int64_t from_ms = max_i64(clock_boot_ms(), ticket->not_before_ms);

	if (from_ms == TICKET_HELD)
		return INT64_MAX;
	if (request->immediate && ticket->attempt <= 1)
		return from_ms + request->immediate_ms;
	return request->max_wait_ms < 0 ? INT64_MAX : from_ms + request->max_wait_ms;
}

/* Says once per process that there are unreadable records, which the plan skips. */
static void queueing_report_broken_records(const struct queueing *queueing)
{
	const struct broker *broker = queueing->broker;
	static bool is_reported;

	if (is_reported || (!broker->view.broken_records && !broker->queue.first_broken))
		return;
	note("some records in '%s' cannot be read and are skipped; see gpulease --doctor",
		queueing->context->dir.path);
	is_reported = true;
}

/* Reports that the queue's files were replaced, if this turn has joined the new queue. */
static void queueing_report_new_ticket(const struct queueing *queueing)
{
	const struct broker *broker = queueing->broker;

	if (broker->result.has_rejoined)
		note("the queue in '%s' was replaced; this job's id is now %llu",
			queueing->context->dir.path, (unsigned long long)broker->number);
}

/* --- signals ----------------------------------------------------------------------- */

/* Finds the signals that would end this process now: not those that are ignored or blocked. */
static void find_ending_signals(sigset_t *set)
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
	find_ending_signals(&signals->set);
	(void)sigprocmask(SIG_BLOCK, &signals->set, &signals->before);
}

void queueing_release_signals(struct queueing_signals *signals)
{
	if (signals->are_held)
		(void)sigprocmask(SIG_SETMASK, &signals->before, NULL);
	signals->are_held = false;
}

/*
 * Gives the ticket up if a signal has come.  Returns 0 if none has, else the exit status.
 *
 * --cancel also sends TERM, after its request was appended.  So a cancel request is looked for
 * first: the history then says who cancelled the job.
 */
static int queueing_obey_signal(const struct queueing *queueing)
{
	struct broker *broker = queueing->broker;
	struct signalfd_siginfo info;

	if (broker->input.signal_fd < 0 ||
		read(broker->input.signal_fd, &info, sizeof(info)) != sizeof(info))
		return 0;
	if (broker_read_orders(broker) == BROKER_ORDER_CANCEL)
		return queueing_obey_cancel(queueing);
	leave_queue(broker, 128 + (int)info.ssi_signo);
	/* signalfd has consumed the signal; raised again, it ends this process when unblocked */
	(void)raise((int)info.ssi_signo);
	return 128 + (int)info.ssi_signo;
}

/*
 * Whether the observer has recalled the job from the queue.  A change of this ends broker_wait().
 */
static bool queueing_is_recalled(const struct queueing *queueing)
{
	const struct job_observer *observer = queueing->observer;
	bool recalled = observer && observer->is_recalled(observer->context);

	if (observer)
		queueing->broker->input.leash_fd = observer->leash_fd(observer->context);
	return recalled;
}

/* Takes a turn.  If the job was released in it, sets *@until_ms, and *@now_ms to the time then. */
static int take_turn(const struct queueing *queueing, int64_t *until_ms, int64_t *now_ms)
{
	struct broker *broker = queueing->broker;
	int64_t before_ms = broker->ticket.not_before_ms;
	int r = broker_turn(broker);

	if (before_ms && !broker->ticket.not_before_ms)
		notifier_tell(NOTIFIER_QUEUED, broker_job(broker), 0, "");
	if (before_ms == TICKET_HELD && broker->ticket.not_before_ms != TICKET_HELD) {
		*until_ms = patience_until_ms(
			&queueing->context->settings->request, &broker->ticket);
		*now_ms = clock_boot_ms();
	}
	queueing_report_broken_records(queueing);
	queueing_report_new_ticket(queueing);
	return r;
}

/* Takes turns until the ticket is granted; see queueing_wait(). */
static int wait_in_queue(const struct queueing *queueing)
{
	const struct run_request *request = &queueing->context->settings->request;
	struct broker *broker = queueing->broker;
	int64_t until_ms = patience_until_ms(request, &broker->ticket);
	/* --immediate without a time: the first final verdict decides */
	bool only_now = request->immediate && !request->immediate_ms &&
			broker->ticket.attempt <= 1;

	for (;;) {
		int64_t now_ms = clock_boot_ms(), wake_ms = INT64_MAX;
		int r;

		if (queueing_is_recalled(queueing)) {
			broker_leave(broker); /* no message and no line in the history */
			return EXIT_GAVE_UP;
		}
		r = queueing_obey_signal(queueing);
		if (r != 0)
			return r;
		r = take_turn(queueing, &until_ms, &now_ms);
		if (r == BROKER_GRANTED) {
			shared_state_note_history_error();
			return 0;
		}
		if (r == BROKER_CANCELLED)
			return queueing_obey_cancel(queueing);
		if (r == BROKER_HOPELESS)
			return queueing_dependency_failed(broker);
		/* not final: a job that is just ending may free its GPUs, or a new probe runs */
		if (r == BROKER_WAITING)
			wake_ms = broker_ending_ms(broker);
		if (wake_ms < INT64_MAX || (only_now && broker_looks_again(broker, r)))
			r = BROKER_PROBING;
		else if (only_now && r == BROKER_PROBING)
			r = BROKER_WAITING;
		/* even --immediate needs one completed probe */
		if (now_ms >= until_ms && !(only_now && r == BROKER_PROBING))
			return queueing_give_up(queueing);
		if ((r == BROKER_WAITING || r == BROKER_TROUBLED) && !only_now &&
			!queueing->context->settings->environment.shown)
			wake_ms = waiting_line_show(queueing->line, broker,
				queueing->observer, clock_boot_ms());
		/* 0: it has a ticket */
		(void)!broker_wait(
			broker, min_i64(wake_ms, only_now ? INT64_MAX : until_ms));
	}
}

int queueing_wait(const struct queueing *queueing)
{
	struct broker *broker = queueing->broker;
	/* a signal may end the others at once: their end here is neither recorded nor told */
	bool holds = broker->ticket.request.is_supervised || notifier_is_there();
	int r;

	if (holds) {
		queueing_hold_signals(queueing->signals);
		broker->input.signal_fd =
			signalfd(-1, &queueing->signals->set, SFD_CLOEXEC | SFD_NONBLOCK);
	}
	diag_hurry(DIAG_HURRY_MS);
	r = wait_in_queue(queueing);
	diag_hurry(DIAG_PATIENCE_MS);
	if (holds) {
		close_fd(&broker->input.signal_fd);
		queueing_release_signals(queueing->signals);
	}
	return r;
}
