#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "alarm.h"
#include "clock.h"
#include "diag.h"
#include "end_record.h"
#include "exitcodes.h"
#include "job_environment.h"
#include "lease_hold.h"
#include "notifier.h"
#include "privacy.h"
#include "rlimits.h"
#include "rights.h"

enum {
	LOCK_MS = 1000, /* for a lease file: another process may hold its lock, stopped */
};

/* --- the command line -------------------------------------------------------------- */

static int refuse_options(const char *text)
{
	diag("%s", text);
	return EXIT_MISUSE;
}

int lease_hold_check(const struct settings *s)
{
	if (!s->request.gpus)
		return refuse_options(
			"-n 0 asks for no GPU, so there is nothing to hold");
	if (s->request.shell && !s->request.dry_run && isatty(STDOUT_FILENO))
		return refuse_options(
			"--shell prints what a shell is to evaluate; write: "
			"eval \"$(gpulease -n 1 --shell)\"");
	return 0;
}

/* --- holding ----------------------------------------------------------------------- */

/* How the lease ended. */
struct held_end {
	const char *how; /* for the history; NULL: it was given back */
	char by[64];
	int status;
};

/*
 * Returns a signalfd for the signals that end the lease.  INT or HUP that was ignored at the start,
 * as in a script's background or under nohup, stays ignored.
 */
static int held_open_signals(void)
{
	static const int signals[] = { SIGINT, SIGHUP, SIGTERM };
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		struct sigaction action = { .sa_handler = SIG_DFL };

		(void)sigaction(signals[i], NULL, &action);
		if (signals[i] == SIGTERM || action.sa_handler != SIG_IGN)
			(void)sigaddset(&set, signals[i]);
	}
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Sleeps until a signal or the time limit.  Returns 0 with *@end, or a negative errno. */
static int held_wait(const struct launch *launch, struct broker *broker, int signals,
	struct held_end *end)
{
	int64_t begun_ms = clock_boot_ms();
	int64_t limit_ms = launch->context->settings->care.limit_ms;
	int64_t until_ms = limit_ms ? begun_ms + limit_ms : INT64_MAX;
	struct pollfd fds[2] = { { .fd = signals, .events = POLLIN } };
	struct alarm alarm = { .at_ms = 0 };
	struct text by = TEXT_ON(end->by);

	do {
		int64_t soon_ms = notifier_soon_ms(begun_ms, limit_ms);
		int timeout = alarm_set(&alarm, min_i64(until_ms, soon_ms), &fds[1]);

		if (poll(fds, ARRAY_SIZE(fds), timeout) < 0 && errno != EINTR)
			return -errno;
		/* --extend may have prolonged it */
		if (clock_boot_ms() >= min_i64(until_ms, soon_ms)) {
			limit_ms = end_record_limit_ms(broker->dir, &launch->gpus,
				launch->owner->token, limit_ms);
			until_ms = begun_ms + limit_ms;
			notifier_tell_soon(launch->ticket, begun_ms, limit_ms);
		}
	} while (!fds[0].revents && clock_boot_ms() < until_ms);
	alarm_release(&alarm);
	if (!fds[0].revents) {
		end->how = HISTORY_LIMIT;
		end->status = EXIT_GAVE_UP;
	} else if (broker_read_orders(broker) == BROKER_ORDER_CANCEL) {
		end->how = HISTORY_CANCEL;
		end->status = 128 + SIGTERM;
		describe_user(broker->result.cancelled_by, NULL, &by);
	}
	return 0;
}

/* Records the end in the history: no other process knows the status and the cause. */
static void held_record_end(
	const struct launch *launch, const char *names, const struct held_end *end)
{
	const struct end_facts facts = {
		.status = end->status, .how = end->how, .by = end->by
	};
	int64_t gone_ms = clock_boot_ms();
	struct end_recorder recorder;

	notifier_ended(launch->ticket, gone_ms, &facts);
	if (end_recorder_open(&launch->context->dir, &launch->gpus, names,
		    launch->owner->token, &recorder) < 0)
		return;
	(void)!end_recorder_write(&recorder, gone_ms, &facts, gone_ms + LOCK_MS);
	end_recorder_release(&recorder);
}

int lease_hold(const struct launch *launch, struct broker *broker)
{
	unsigned long long job = launch->ticket;
	struct held_end end = { .status = EXIT_DONE };
	autofd int signals = held_open_signals();
	char names[GPUSET_MAX * 8], ordered[GPUSET_MAX * 8];
	struct text text = TEXT_ON(ordered);
	int r = signals < 0 ? -errno : 0;

	diag_hurry(DIAG_HURRY_MS);
	end_record_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	job_environment_list_gpus(launch, GPU_LIST_NAMES, &text);
	if (r == 0 && (printf("%s\n", ordered) < 0 || fflush(stdout) != 0))
		r = -errno;
	if (r == 0) {
		note("job %llu has GPU %s; Ctrl-C gives it back", job, ordered);
		r = held_wait(launch, broker, signals, &end);
	}
	if (r < 0) {
		diag("cannot hold the lease: %s", strerror(-r));
		end.status = EXIT_MISUSE;
	}
	held_record_end(launch, names, &end);
	if (end.status == EXIT_GAVE_UP)
		note("job %llu has reached its time limit", job);
	else if (end.how)
		note("job %llu was cancelled by %s", job, end.by);
	return end.status;
}
