#include <errno.h>
#include <signal.h>

#include "batch_member.h"
#include "clock.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "explain.h"
#include "parse.h"
#include "queueing.h"
#include "state.h"

/* Whoever waits for a job in the background is to learn that it has given up. */
static void leave(struct broker *broker)
{
	if (broker->ticket.request.is_supervised && broker->live_fd >= 0)
		ending_tell_leaseless(broker->dir, broker->number, &broker->ticket, 0,
			&(struct ending_facts){ .status = EXIT_GAVE_UP });
	broker_leave(broker);
}

static int give_up(const struct queueing *queueing)
{
	const struct settings *settings = queueing->context->settings;
	char words[512], waited[DURATION_SIZE];
	struct text text = TEXT_ON(words);

	waiting_line_reason(queueing->line, queueing->broker, &text);
	leave(queueing->broker);
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

	leave(broker);
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

int queueing_wait(const struct queueing *queueing)
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
			return EXIT_MISUSE;
		}
		if (r == BROKER_WAITING && only_now && broker_looks_again(broker))
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
			return EXIT_MISUSE;
		}
	}
}
