#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "alarm.h"
#include "clock.h"
#include "diag.h"
#include "ending.h"
#include "exitcodes.h"
#include "explain.h"
#include "lease_only.h"
#include "limits.h"
#include "rights.h"

enum {
	LOCK_MS = 1000, /* a process that has a lease file locked may be stopped */
};

/* --- the command line -------------------------------------------------------------- */

static int refuse(const char *text)
{
	diag("%s", text);
	return EXIT_MISUSE;
}

int lease_check(const struct settings *s)
{
	if (!s->gpus)
		return refuse("there is no GPU to hold with -n 0");
	if (s->output || s->error || s->input)
		return refuse("there is no command to be redirected; leave -o, -e and -i "
			      "out");
	if (s->adopt_pid && !s->shell &&
		(s->gpu_ids || s->allow || s->except || s->prefer || s->after ||
			s->after_ok || s->singleton))
		return refuse("--pid is for the GPUs that the process uses already, and "
			      "at once; leave options that choose or wait out");
	if (s->shell && !s->dry_run && isatty(STDOUT_FILENO))
		return refuse("--shell prints what a shell is to evaluate; write: "
			      "eval \"$(gpulease -n 1 --shell)\"");
	return 0;
}

/* --- what others are to own -------------------------------------------------------- */

/* Whether it counts its processes as we do.  Who is not to be looked into is not asked. */
static bool is_in_our_namespace(uint32_t pid, const struct owner *self)
{
	char path[32];
	struct stat st;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	rights_as_user_begin();
	r = stat(path, &st);
	rights_as_user_end();
	return r < 0 || st.st_ino == self->pidns;
}

int lease_name_heir(uint32_t pid, bool root_may, struct owner *ret)
{
	char name[64];
	struct text text = TEXT_ON(name);
	int r = owner_of_pid(pid, ret);

	if (r == -ESRCH || r == -ENOENT) {
		diag("there is no process %u", pid);
		return EXIT_MISUSE;
	}
	if (r == 0)
		r = token_make(ret->token);
	if (r < 0) {
		diag("cannot look at process %u: %s", pid, strerror(-r));
		return EXIT_MISUSE;
	}
	if (ret->uid != getuid() && !(root_may && getuid() == 0)) {
		describe_user(ret->uid, NULL, &text);
		diag("process %u belongs to %s; a lease is for one's own", pid, name);
		return EXIT_MISUSE;
	}
	if (!is_in_our_namespace(pid, ret)) {
		diag("process %u is in another pid namespace, a container; lease its GPUs "
		     "there",
			pid);
		return EXIT_MISUSE;
	}
	ret->is_adopted = 1;
	return 0;
}

int lease_look_after(const struct launch *launch, bool is_shell)
{
	int r;

	limits_tag_process(launch->owner->pid, launch->owner->token);
	r = launch_watchdog(launch, is_shell);
	if (r < 0)
		diag("cannot start the watchdog of the time limit: %s", strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/* --- holding ----------------------------------------------------------------------- */

/* How the lease ends. */
struct held_end {
	const char *how; /* for the history, NULL: it was given back */
	char by[64];
	int status;
};

/* The signals that end it; who was started to be deaf to the first two stays so. */
static int open_signals(void)
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

/* Waits for the end, doing nothing meanwhile. */
static int hold(
	struct broker *broker, int64_t limit_ms, int signals, struct held_end *end)
{
	int64_t until_ms = limit_ms ? clock_boot_ms() + limit_ms : INT64_MAX;
	struct pollfd fds[2] = { { .fd = signals, .events = POLLIN } };
	struct alarm alarm = { .at_ms = 0 };
	struct text by = TEXT_ON(end->by);

	do {
		int timeout = alarm_set(&alarm, until_ms, &fds[1]);

		if (poll(fds, ARRAY_SIZE(fds), timeout) < 0 && errno != EINTR)
			return -errno;
	} while (!fds[0].revents && clock_boot_ms() < until_ms);
	alarm_release(&alarm);
	if (!fds[0].revents) {
		end->how = HISTORY_LIMIT;
		end->status = EXIT_GAVE_UP;
	} else if (broker_read_orders(broker) == BROKER_ORDER_CANCEL) {
		end->how = HISTORY_CANCEL;
		end->status = 128 + SIGTERM;
		describe_user(broker->cancelled_by, NULL, &by);
	}
	return 0;
}

/* It knows its end exactly, and nobody else will. */
static void tell(
	const struct launch *launch, const char *names, const struct held_end *end)
{
	const struct ending_facts facts = {
		.status = end->status, .how = end->how, .by = end->by
	};
	int64_t gone_ms = clock_boot_ms();
	struct ending ending;

	if (ending_open(&launch->context->dir, &launch->gpus, names, launch->owner->token,
		    &ending) < 0)
		return;
	(void)!ending_record_open(&ending, gone_ms, &facts, gone_ms + LOCK_MS);
	ending_release(&ending);
}

int lease_hold(const struct launch *launch, struct broker *broker)
{
	unsigned long long job = launch->ticket;
	struct held_end end = { .status = EXIT_DONE };
	autofd int signals = open_signals();
	char names[GPUSET_MAX * 8];
	int r = signals < 0 ? -errno : 0;

	ending_name_gpus(launch->view, &launch->gpus, names, sizeof(names));
	if (r == 0 && (printf("%s\n", names) < 0 || fflush(stdout) != 0))
		r = -errno;
	if (r == 0) {
		note("job %llu has GPU %s; Ctrl-C gives it back", job, names);
		r = hold(broker, launch->context->settings->limit_ms, signals, &end);
	}
	if (r < 0) {
		diag("cannot hold the lease: %s", strerror(-r));
		end.status = EXIT_MISUSE;
	}
	tell(launch, names, &end);
	if (end.status == EXIT_GAVE_UP)
		note("job %llu has reached its time limit", job);
	else if (end.how)
		note("job %llu was cancelled by %s", job, end.by);
	return end.status;
}
