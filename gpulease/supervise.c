#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "alarm.h"
#include "announce.h"
#include "background.h"
#include "batch_member.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "foreground.h"
#include "report.h"
#include "supervise.h"
#include "teardown.h"

enum {
	SIGNAL_FD, /* of those that are waited for */
	BELL_FD,
	ALARM_FD,
	OWN_FDS,

	NOTE_MS = 1000, /* to the next try after a lease file was locked; then 2, 4 … s */
	NOTE_MAX_MS = 60 * 1000,
	NAP_MS = 1000, /* the longest sleep on a clock that does not count a suspend */
};

/* A command under way. */
struct watched {
	const struct supervision *order;
	struct broker *broker;
	struct attempt_end *end;
	pid_t command; /* 0: it has ended */
	int64_t note_ms; /* when to note the command in the lease; INT64_MAX: that is done */
	int64_t note_wait_ms; /* before the next try */
	bool is_stopped;      /* as far as we have been told */
	int signal_fd;
	sigset_t before; /* the signal mask that gpulease was started with */
	struct foreground foreground;
	int64_t limit_at_ms, warn_at_ms; /* CLOCK_BOOTTIME; INT64_MAX: never */
	enum end_cause limit_cause;      /* why it ends then */
	bool has_warned;
	bool is_ending; /* for ->end->cause */
	struct teardown teardown;
	struct alarm alarm; /* for the next of the moments above */
};

/* --- signals ----------------------------------------------------------------------- */

/* What is read here instead of acting on this process. */
static const int passed[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP,
	SIGTTIN, SIGTTOU };

/* What was ignored at our start the command ignores, too, as in a script's background. */
static bool asks_to_end(int signal)
{
	static const char all[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };
	struct sigaction action;

	return memchr(all, signal, sizeof(all)) &&
	       sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN;
}

static int open_signals(struct watched *watched)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGCONT);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		(void)sigaddset(&set, passed[i]);
	/* the login has ended, which is no reason for a job in the background to do so */
	if (in_background())
		(void)sigdelset(&set, SIGHUP);
	watched->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (watched->signal_fd < 0)
		return -errno;
	(void)sigprocmask(SIG_BLOCK, &set, &watched->before);
	return 0;
}

static void begin_ending(struct watched *watched, enum end_cause cause)
{
	if (cause == CAUSE_LIMIT)
		announce_limit(broker_job(watched->broker), watched->order->limit_ms,
			watched->order->grace_ms);
	watched->end->cause = cause;
	watched->is_ending = true;
}

/* Whether the command has not ended, as far as the kernel knows by now. */
static bool is_alive(const struct watched *watched)
{
	siginfo_t end = { .si_pid = 0 };

	return watched->command &&
	       waitid(P_PID, (id_t)watched->command, &end, WEXITED | WNOHANG | WNOWAIT) ==
		       0 &&
	       end.si_pid == 0;
}

static void warn_command(struct watched *watched)
{
	autofd int pidfd = -1;

	watched->warn_at_ms = INT64_MAX;
	if (!watched->order->warn_signal || !is_alive(watched))
		return;
	pidfd = pidfd_open_process((uint32_t)watched->command);
	/* without a pidfd the pid is still that of the command: it is not reaped yet */
	watched->has_warned = process_signal((uint32_t)watched->command, pidfd,
				      PROCESS_ANY_USER, watched->order->warn_signal) == 0;
}

/* As if its time were over as soon as it has had its warning. */
static void obey_preemption(struct watched *watched)
{
	const struct supervision *order = watched->order;
	int64_t at_ms = clock_boot_ms() + (order->warn_signal ? order->warn_ms : 0);

	if (watched->is_ending || watched->limit_cause == CAUSE_PREEMPT ||
		watched->limit_at_ms <= at_ms || !is_alive(watched))
		return;
	announce_preemption(watched->broker->preempted_by);
	watched->limit_at_ms = at_ms;
	watched->limit_cause = CAUSE_PREEMPT;
	if (!watched->has_warned)
		warn_command(watched);
}

/* Whether somebody has cancelled the job. */
static bool obey_orders(struct watched *watched)
{
	int order = broker_read_orders(watched->broker);

	if (order == BROKER_ORDER_PREEMPT)
		obey_preemption(watched);
	if (order != BROKER_ORDER_CANCEL)
		return false;
	watched->end->by = watched->broker->cancelled_by;
	begin_ending(watched, CAUSE_CANCEL);
	return true;
}

/* Whether the command is stopped, and has done nothing since that we have not been told of. */
static bool stands_still(const struct watched *watched)
{
	siginfo_t news = { .si_pid = 0 };

	if (!watched->command || !watched->is_stopped)
		return false;
	(void)waitid(P_PID, (id_t)watched->command, &news,
		WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT);
	return news.si_pid == 0;
}

/*
 * To all of the group as a rule, or else to this process alone: then the command stands still
 * since a stop that we have already been told of.  One that we have not been told of yet is
 * younger than the signal, and to be obeyed.
 */
static void continue_command(const struct watched *watched)
{
	if (stands_still(watched))
		(void)kill(watched->command, SIGCONT);
}

static void obey_signal(struct watched *watched, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;

	if (signal == SIGCHLD)
		return;
	if (signal == SIGCONT) {
		continue_command(watched);
		return;
	}
	if (signal == SIGTERM && obey_orders(watched))
		return;
	if (asks_to_end(signal))
		watched->end->was_told = true;
	/* a line of a batch is often a shell with others: its runner means all of them */
	if (signal == SIGTERM && in_batch()) {
		watched->end->by = getuid();
		begin_ending(watched, CAUSE_CANCEL);
		return;
	}
	if (watched->command &&
		!foreground_reached_all(&watched->foreground, watched->command, info))
		(void)kill(
			watched->command, signal); /* a child not waited for: it is it */
}

static void read_signals(struct watched *watched)
{
	struct signalfd_siginfo info;

	while (read(watched->signal_fd, &info, sizeof(info)) == sizeof(info))
		obey_signal(watched, &info);
	foreground_has_read_all(&watched->foreground);
}

/* Nothing that was meant for the command is left pending: it would end us now. */
static void close_signals(struct watched *watched)
{
	read_signals(watched);
	close_fd(&watched->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &watched->before, NULL);
}

/* --- children ---------------------------------------------------------------------- */

/*
 * What the command has left behind, as far as it has ended.  Neither the command itself, which
 * may have ended only now, nor an nvidia-smi: those are asked for by who knows them, soon.
 */
static void reap_orphans(struct broker *broker, struct watched *watched)
{
	for (;;) {
		uint32_t known[PROBER_CHILDREN + 1];
		unsigned count = prober_children(&broker->prober, known);
		siginfo_t info = { .si_pid = 0 };

		known[count++] = watched ? (uint32_t)watched->command : 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
			info.si_pid == 0)
			return;
		for (unsigned i = 0; i < count; i++)
			if (known[i] == (uint32_t)info.si_pid)
				return;
		(void)waitpid(info.si_pid, NULL, WNOHANG);
		if (watched)
			foreground_forget(&watched->foreground, info.si_pid);
	}
}

/* Notes the command in the lease, which then outlives this process as long as the command lives. */
static void note_command(struct watched *watched)
{
	struct command runs;
	bool is_noted;

	watched->note_ms = INT64_MAX;
	if (!watched->command)
		return;
	is_noted = command_of_child((uint32_t)watched->command, &runs) == 0;
	is_noted = broker_note_command(watched->broker, &runs) == 0 && is_noted;
	if (is_noted)
		return;
	watched->note_wait_ms = watched->note_wait_ms
					? min_i64(2 * watched->note_wait_ms, NOTE_MAX_MS)
					: NOTE_MS;
	watched->note_ms = clock_boot_ms() + watched->note_wait_ms;
}

static int64_t find_wake(const struct watched *watched)
{
	int64_t wake_ms = min_i64(watched->limit_at_ms, watched->warn_at_ms);

	wake_ms = min_i64(wake_ms, watched->note_ms);
	if (watched->order->sampler)
		wake_ms = min_i64(wake_ms, sampler_wake_ms(watched->order->sampler));
	return wake_ms;
}

static void look_at_children(struct watched *watched)
{
	int status;

	while (watched->command &&
		waitpid(watched->command, &status, WNOHANG | WUNTRACED | WCONTINUED) ==
			watched->command) {
		watched->is_stopped = WIFSTOPPED(status);
		if (WIFCONTINUED(status))
			continue;
		if (WIFSTOPPED(status)) {
			/* not for the samples: a job that is stopped uses what it did */
			if (!watched->is_ending && stands_still(watched))
				foreground_stop(watched->command, WSTOPSIG(status),
					min_i64(watched->limit_at_ms,
						watched->warn_at_ms),
					watched->broker->bell_fd);
			continue;
		}
		watched->end->wait_status = status;
		watched->command = 0;
	}
	if (!watched->command && !watched->is_ending)
		return; /* it is over: not a moment for what it has left behind */
	reap_orphans(watched->broker, watched);
}

/* --- the loop ---------------------------------------------------------------------- */

static void warn_of_use(const struct sampler *sampler)
{
	char line[256];
	struct text text = TEXT_ON(line);

	report_excess(broker_job(sampler->broker), sampler, &text);
	note("%s", line);
}

static int wait_for_more(struct watched *watched, int64_t wake_ms)
{
	struct sampler *sampler = watched->order->sampler;
	struct pollfd fds[OWN_FDS + PROBE_POLL_FDS] = {
		[SIGNAL_FD] = { watched->signal_fd, POLLIN, 0 },
		[BELL_FD] = { watched->broker->bell_fd, POLLIN, 0 },
	};
	unsigned count =
		OWN_FDS + (sampler ? sampler_poll_fds(sampler, fds + OWN_FDS) : 0);
	int timeout = alarm_set(&watched->alarm, wake_ms, &fds[ALARM_FD]);

	if (poll(fds, count, timeout) < 0 && errno != EINTR)
		return -errno;
	if (sampler && sampler_step(sampler, clock_boot_ms()))
		warn_of_use(sampler);
	if (sampler)
		batch_tell_memory(sampler);
	read_signals(watched);
	if (fds[BELL_FD].revents)
		(void)obey_orders(watched);
	return 0;
}

/* What is due at @now_ms.  Whether there is still something to wait for, at most until… */
static bool goes_on(struct watched *watched, int64_t now_ms, int64_t *ret_wake_ms)
{
	int64_t wake_ms;

	if (!watched->is_ending && !watched->command)
		return false;
	if (now_ms >= watched->note_ms)
		note_command(watched);
	if (now_ms >= watched->warn_at_ms)
		warn_command(watched);
	if (!watched->is_ending && now_ms >= watched->limit_at_ms)
		begin_ending(watched, watched->limit_cause);
	*ret_wake_ms = find_wake(watched);
	if (!watched->is_ending)
		return true;
	watched->limit_at_ms = watched->warn_at_ms = INT64_MAX;
	watched->teardown.command = watched->command;
	watched->teardown.helper = (uint32_t)watched->foreground.witness.pid;
	if (teardown_step(&watched->teardown, now_ms, &wake_ms) != TEARDOWN_LATER)
		return false;
	*ret_wake_ms = min_i64(find_wake(watched), wake_ms);
	return true;
}

static int watch_over(struct watched *watched)
{
	int64_t wake_ms;
	int r = 0;

	for (;;) {
		look_at_children(watched);
		if (!goes_on(watched, clock_boot_ms(), &wake_ms))
			return 0;
		r = wait_for_more(watched, wake_ms);
		if (r < 0)
			return r;
	}
}

/* Whether the user has sent TERM: to this process, or to the command alone, which died of it. */
static bool was_ended_by_user(const struct watched *watched)
{
	int status = watched->end->wait_status;

	return watched->end->was_told ||
	       (!watched->is_ending && watched->order->warn_signal != SIGTERM &&
		       WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* Finds why the command has ended if its status does not say so; see supervise.h. */
static void find_cause(struct watched *watched)
{
	struct attempt_end *end = watched->end;
	int status = end->wait_status, done_status = watched->order->done_status;
	bool is_back =
		watched->limit_cause == CAUSE_PREEMPT || watched->order->is_sent_back;
	bool is_users;

	if (end->cause == CAUSE_CANCEL)
		return;
	end->is_done = done_status >= 0 && WIFEXITED(status) &&
		       WEXITSTATUS(status) == done_status &&
		       (is_back || !watched->is_ending);
	if (!watched->is_ending && !watched->has_warned)
		return;
	if (is_back) {
		/* a job that the user has ended is not preempted, but may have timed out */
		end->was_told = was_ended_by_user(watched);
		is_users = end->was_told &&
			   (!watched->is_ending || watched->limit_cause == CAUSE_PREEMPT);
		end->cause =
			end->is_done || is_users ? CAUSE_ITSELF : watched->limit_cause;
	} else if (!watched->is_ending && WIFSIGNALED(status) &&
		   WTERMSIG(status) == watched->order->warn_signal) {
		end->cause = watched->limit_cause;
	}
}

/* In the child: waits until the lease names it.  Ends if the parent dies before. */
static void await_note(int ends[2])
{
	char byte;
	ssize_t n;

	close_fd(&ends[1]);
	do
		n = read(ends[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(EXIT_MISUSE);
	close_fd(&ends[0]);
}

/* Starts the command, which does not run before the lease names it. */
static int start_command(struct watched *watched)
{
	int ends[2], error;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	watched->command = fork();
	error = errno;
	if (watched->command == 0) {
		(void)sigprocmask(SIG_SETMASK, &watched->before, NULL);
		await_note(ends);
		_exit(launch(watched->order->launch));
	}
	close_fd(&ends[0]);
	if (watched->command > 0) {
		note_command(watched);
		/* before the command runs: it sees which signals the whole group gets */
		if (!in_background())
			foreground_begin(&watched->foreground);
		(void)!write(ends[1], "!", 1);
	}
	close_fd(&ends[1]);
	return watched->command < 0 ? -error : 0;
}

static int start(struct watched *watched)
{
	const struct supervision *order = watched->order;
	int64_t begun_ms = clock_boot_ms();
	int r = batch_tell_started(order->broker, order->launch, order->waited_ms);

	if (r < 0)
		return r;
	if (order->limit_ms) {
		watched->limit_at_ms = begun_ms + order->limit_ms;
		if (order->warn_signal)
			watched->warn_at_ms = watched->limit_at_ms - order->warn_ms;
	}
	return start_command(watched);
}

void supervise_prepare(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

int supervise(const struct supervision *supervision, struct attempt_end *ret)
{
	int64_t begun_ms = clock_boot_ms();
	struct watched watched = {
		.order = supervision,
		.broker = supervision->broker,
		.end = ret,
		.note_ms = INT64_MAX,
		.limit_at_ms = INT64_MAX,
		.warn_at_ms = INT64_MAX,
		.limit_cause = CAUSE_LIMIT,
		.teardown = TEARDOWN_OF(supervision->broker, supervision->grace_ms),
	};
	int r;

	*ret = (struct attempt_end){ .cause = CAUSE_ITSELF };
	r = open_signals(&watched);
	if (r < 0)
		return r;
	r = start(&watched);
	if (r == 0)
		r = watch_over(&watched);
	find_cause(&watched);
	ret->ran_ms = clock_boot_ms() - begun_ms;
	foreground_end(&watched.foreground);
	close_signals(&watched);
	teardown_release(&watched.teardown);
	alarm_release(&watched.alarm);
	return r;
}

/* --- afterwards -------------------------------------------------------------------- */

void supervise_sweep(const struct supervision *supervision)
{
	struct teardown teardown =
		TEARDOWN_OF(supervision->broker, supervision->grace_ms);
	sigset_t child, before;
	int64_t now_ms, wake_ms;

	/* only SIGCHLD: signals that would end this process wait until it is in the queue again */
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child, &before);
	for (;;) {
		struct timespec span;

		reap_orphans(supervision->broker, NULL);
		now_ms = clock_boot_ms();
		if (teardown_step(&teardown, now_ms, &wake_ms) != TEARDOWN_LATER)
			break;
		wake_ms = min_i64(max_i64(wake_ms - now_ms, 0), NAP_MS);
		span = (struct timespec){ .tv_sec = wake_ms / 1000,
			.tv_nsec = wake_ms % 1000 * 1000000 };
		(void)sigtimedwait(&child, NULL, &span);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	teardown_release(&teardown);
}

/* Of a signal, but without a core: the command has left its own, if it was to leave one. */
static void die_of(int number)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t one;

	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)sigaction(number, &usual, NULL);
	(void)sigemptyset(&one);
	(void)sigaddset(&one, number);
	(void)raise(number);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

int supervise_end_as(const struct attempt_end *end)
{
	if (end->cause != CAUSE_LIMIT && WIFSIGNALED(end->wait_status))
		die_of(WTERMSIG(end->wait_status));
	return care_exit_status(end);
}
