#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "alarm.h"
#include "end_notice.h"
#include "end_record.h"
#include "background.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "job_control.h"
#include "namespaces.h"
#include "notifier.h"
#include "process_lease.h"
#include "report.h"
#include "signals.h"
#include "supervise.h"
#include "teardown.h"

enum {
	SIGNAL_FD, /* indexes of the array for poll(2) */
	BELL_FD,
	ALARM_FD,
	OWN_FDS,

	NOTE_MS = 1000, /* to the next try after a lease file was locked; then 2, 4 … s */
	NOTE_MAX_MS = 60 * 1000,
	HEAR_MS = 1000, /* from the request for a requeue to TERM */
	NAP_MS = 1000,  /* sleeps are cut to this: the timeout does not count a suspend */
};

/* A command that runs, or is about to be started. */
struct watched {
	const struct supervision *order;
	struct broker *broker;
	struct attempt_end *end;
	pid_t command;        /* 0: it has ended and is reaped */
	int64_t note_ms;      /* when to note the command in the lease; INT64_MAX: done */
	int64_t note_wait_ms; /* before the next try */
	bool is_stopped;      /* by the last status from waitpid(2) */
	int signal_fd;
	sigset_t before; /* the signal mask that gpulease was started with */
	struct job_control job_control;
	int64_t begun_ms, limit_ms;      /* ->limit_ms 0: none */
	int64_t limit_at_ms, warn_at_ms; /* CLOCK_BOOTTIME; INT64_MAX: never */
	int64_t window_at_ms;            /* when a window sends the job back, likewise */
	enum end_cause limit_cause;      /* why the command ends at ->limit_at_ms */
	bool has_warned;
	bool is_ending; /* the teardown has begun, because of ->end->cause */
	struct teardown teardown;
	struct alarm alarm; /* for the next of the times above */
	struct use_watch use;
};

/* --- signals ----------------------------------------------------------------------- */

/* Signals that are blocked and read from the signalfd instead of acting on this process. */
static const int passed[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP,
	SIGTTIN, SIGTTOU };

/*
 * Whether the signal orders the job to end.  One that was ignored when gpulease started is ignored
 * by the command as well, as INT and QUIT in the background of a script.
 */
static bool is_end_signal(int signal)
{
	static const char all[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT };
	struct sigaction action;

	return memchr(all, signal, sizeof(all)) &&
	       sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN;
}

/*
 * Blocks the signals and opens the signalfd.  From here on a signal neither ends nor stops this
 * process, which first finds out whether the command got the signal, too.
 */
static int watched_open_signals(struct watched *watched)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGCONT);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		(void)sigaddset(&set, passed[i]);
	/* HUP means that the login has ended; a job in the background outlives it */
	if (is_in_background())
		(void)sigdelset(&set, SIGHUP);
	watched->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (watched->signal_fd < 0)
		return -errno;
	(void)sigprocmask(SIG_BLOCK, &set, &watched->before);
	return 0;
}

/* Begins the teardown; watched_step() carries it out. */
static void watched_begin_ending(struct watched *watched, enum end_cause cause)
{
	if (cause == CAUSE_LIMIT)
		end_notice_limit(broker_job(watched->broker), false, watched->limit_ms,
			watched->order->grace_ms);
	use_watch_end(&watched->use);
	watched->end->cause = cause;
	watched->is_ending = true;
}

/* Whether the command has not ended.  Does not reap it: watched_reap_command() reads the status. */
static bool command_is_alive(const struct watched *watched)
{
	siginfo_t end = { .si_pid = 0 };

	return watched->command &&
	       waitid(P_PID, (id_t)watched->command, &end, WEXITED | WNOHANG | WNOWAIT) ==
		       0 &&
	       end.si_pid == 0;
}

/* Sends the warning signal to the steps that run.  If there is none, the log says so. */
static void steps_warn(struct watched *watched)
{
	const struct owner *owner = &watched->broker->ticket.owner;
	int number = watched->order->warn_signal;

	watched->has_warned = process_lease_signal(owner->token, owner->uid, number,
				      owner->pid, PROCESS_LEASE_STEPS) > 0;
	if (!watched->has_warned)
		note("job %llu: no step runs, so none gets signal %s",
			(unsigned long long)broker_job(watched->broker),
			signal_name(number).text);
}

/*
 * User @by has cancelled the job.  A command that has ended by itself just before has done so all
 * the same, and is only not started again.
 */
static void watched_obey_cancel(struct watched *watched, uint32_t by)
{
	if (!watched->is_ending && !watched->has_warned && !command_is_alive(watched)) {
		watched->end->is_cancelled_late = true;
		return;
	}
	watched->end->by = by;
	watched_begin_ending(watched, CAUSE_CANCEL);
}

/* Sends the warning signal, if there is one and the command is alive. */
static void command_warn(struct watched *watched)
{
	autofd int pidfd = -1;

	watched->warn_at_ms = INT64_MAX;
	if (!watched->order->warn_signal || !command_is_alive(watched))
		return;
	if (watched->order->warns_steps) {
		steps_warn(watched);
		return;
	}
	pidfd = pidfd_open_process((uint32_t)watched->command);
	/* also safe without a pidfd: until this process reaps the command, its pid is not reused */
	watched->has_warned = process_signal((uint32_t)watched->command, pidfd,
				      PROCESS_ANY_USER, watched->order->warn_signal) == 0;
}

/* Sets when the limit and the warning are due. */
static void watched_set_limit(struct watched *watched)
{
	if (!watched->limit_ms)
		return;
	watched->limit_at_ms = watched->begun_ms + watched->limit_ms;
	if (watched->order->warn_signal)
		watched->warn_at_ms = watched->limit_at_ms - watched->order->warn_ms;
}

/*
 * The limit, the warning or the notice of it is due: reads the limit again, which --extend may have
 * changed.  A command that was warned before the old limit and has not ended by then is warned
 * anew.
 */
static void watched_read_limit(struct watched *watched)
{
	const struct launch *launch = watched->order->launch;
	int64_t limit_ms = end_record_limit_ms(watched->broker->dir, &launch->gpus,
		launch->owner->token, watched->limit_ms);

	if (limit_ms != watched->limit_ms) {
		watched->limit_ms = watched->broker->ticket.request.limit_ms = limit_ms;
		watched->has_warned = false;
		watched_set_limit(watched);
	}
	notifier_tell_soon(broker_job(watched->broker), watched->begun_ms, limit_ms);
}

/*
 * Obeys a preemption request of job @by, or a window (0): moves the time limit to now, or to the
 * end of the warning time, and makes preemption the cause.  A limit that comes earlier anyway
 * stays.
 */
static void watched_obey_preemption(struct watched *watched, uint64_t by)
{
	const struct supervision *order = watched->order;
	int64_t at_ms = clock_boot_ms() + (order->warn_signal ? order->warn_ms : 0);

	if (watched->is_ending || watched->limit_cause != CAUSE_LIMIT ||
		watched->limit_at_ms <= at_ms || !command_is_alive(watched))
		return;
	end_notice_preemption(by);
	watched->end->preempted_by = by;
	watched->limit_at_ms = at_ms;
	watched->limit_cause = CAUSE_PREEMPT;
	if (!watched->has_warned)
		command_warn(watched);
}

/* Reads the windows: obeys one that has begun, or sets when the next begins. */
static void watched_obey_windows(struct watched *watched)
{
	watched->window_at_ms = broker_window_ms(watched->broker);
	if (watched->window_at_ms > clock_boot_ms())
		return;
	watched->window_at_ms = INT64_MAX;
	watched_obey_preemption(watched, 0);
}

/*
 * The user wants the job back in the queue: moves the time limit to a moment from now, so that a
 * handler which has asked for its own job can hear that, and exit.  If the command is being ended
 * already, or has ended, only the cause changes.  A job that is cancelled does not come back.
 */
static void watched_obey_requeue(struct watched *watched)
{
	struct attempt_end *end = watched->end;

	if (end->cause == CAUSE_REQUEUE || end->cause == CAUSE_CANCEL)
		return;
	broker_note_requeue(watched->broker);
	end->cause = watched->limit_cause = CAUSE_REQUEUE;
	watched->warn_at_ms = INT64_MAX;
	watched->limit_at_ms = min_i64(watched->limit_at_ms, clock_boot_ms() + HEAR_MS);
}

/* Obeys requests of other processes about the job.  Returns whether it is cancelled. */
static bool watched_obey_requests(struct watched *watched)
{
	int order = broker_read_orders(watched->broker);

	if (order == BROKER_ORDER_PREEMPT)
		watched_obey_preemption(watched, watched->broker->result.preempted_by);
	if (order == BROKER_ORDER_REQUEUE)
		watched_obey_requeue(watched);
	/* the bell tells of windows, too */
	watched_obey_windows(watched);
	if (order != BROKER_ORDER_CANCEL)
		return false;
	watched_obey_cancel(watched, watched->broker->result.cancelled_by);
	return true;
}

/* Whether the command is stopped, and no newer change of its state is waiting to be read. */
static bool command_is_stopped(const struct watched *watched)
{
	siginfo_t news = { .si_pid = 0 };

	if (!watched->command || !watched->is_stopped)
		return false;
	(void)waitid(P_PID, (id_t)watched->command, &news,
		WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT);
	return news.si_pid == 0;
}

/*
 * This process got CONT.  Usually the whole group did.  If only this process did, the command is
 * still stopped, by a stop that this process has read already, and gets CONT here.  A stop that
 * this process has not read yet came after the CONT: then the command must stay stopped.
 */
static void command_continue(const struct watched *watched)
{
	if (command_is_stopped(watched))
		(void)kill(watched->command, SIGCONT);
}

/* Obeys a signal, or passes it on to the command. */
static void watched_obey_signal(
	struct watched *watched, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;

	if (signal == SIGCHLD)
		return;
	if (signal == SIGCONT) {
		command_continue(watched);
		return;
	}
	/* --cancel appends its request first and may then send TERM: the request names the user */
	if (signal == SIGTERM && watched_obey_requests(watched))
		return;
	if (is_end_signal(signal))
		watched->end->was_told = true;
	/*
	 * TERM from the runner of a batch means the whole job.  A line of a jobs file is often a
	 * shell with children, and passing TERM on would reach only the shell.
	 */
	if (signal == SIGTERM && watched->order->observer) {
		watched_obey_cancel(watched, namespaces_own_user());
		return;
	}
	/* the command is not reaped yet, so its pid cannot belong to another process */
	if (watched->command &&
		!job_control_reached_all(&watched->job_control, watched->command, info))
		(void)kill(watched->command, signal);
}

static void watched_read_signals(struct watched *watched)
{
	struct signalfd_siginfo info;

	while (read(watched->signal_fd, &info, sizeof(info)) == sizeof(info))
		watched_obey_signal(watched, &info);
	job_control_has_read_all(&watched->job_control);
}

/*
 * Restores the signal mask.  Reads all signals first: one that was meant for the command and is
 * still pending would end this process when it is unblocked.
 */
static void watched_close_signals(struct watched *watched)
{
	watched_read_signals(watched);
	close_fd(&watched->signal_fd);
	(void)sigprocmask(SIG_SETMASK, &watched->before, NULL);
}

/* --- children ---------------------------------------------------------------------- */

/*
 * Reaps the leftover processes of the command that have ended.  Stops at the command itself, which
 * may just have ended, at an nvidia-smi, and at the child that takes a sample: their exit statuses
 * belong to watched_reap_command(), the prober and use_watch_step(), which read them soon.
 */
static void reap_orphans(struct broker *broker, struct watched *watched)
{
	for (;;) {
		uint32_t known[PROBER_CHILDREN + 2];
		unsigned count = prober_children(&broker->prober, known);
		siginfo_t info = { .si_pid = 0 };

		known[count++] = watched ? (uint32_t)watched->command : 0;
		known[count++] = watched ? (uint32_t)watched->use.child.pid : 0;
		if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
			info.si_pid == 0)
			return;
		for (unsigned i = 0; i < count; i++)
			if (known[i] == (uint32_t)info.si_pid)
				return;
		(void)waitpid(info.si_pid, NULL, WNOHANG);
		if (watched)
			job_control_forget(&watched->job_control, info.si_pid);
	}
}

/*
 * Notes the command in the lease: if this process is killed, the lease lives as long as the
 * command.  Tries again later if a lease file is locked.
 */
static void watched_note_command(struct watched *watched)
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

/* Returns when the limit, the warning or the notice of it is due. */
static int64_t watched_limit_due_ms(const struct watched *watched)
{
	int64_t due_ms = min_i64(watched->limit_at_ms, watched->warn_at_ms);

	if (watched->is_ending || watched->limit_cause != CAUSE_LIMIT)
		return due_ms;
	return min_i64(due_ms, notifier_soon_ms(watched->begun_ms, watched->limit_ms));
}

/* Returns when one of these, or a window, is due. */
static int64_t watched_end_ms(const struct watched *watched)
{
	return min_i64(watched->window_at_ms, watched_limit_due_ms(watched));
}

/* Returns the time at which the next step is due, apart from those of the teardown. */
static int64_t watched_wake_ms(const struct watched *watched)
{
	int64_t wake_ms = watched_end_ms(watched);

	wake_ms = min_i64(wake_ms, watched->note_ms);
	wake_ms = min_i64(wake_ms, use_watch_wake_ms(&watched->use));
	if (watched->order->sampler)
		wake_ms = min_i64(wake_ms, sampler_wake_ms(watched->order->sampler));
	return wake_ms;
}

/*
 * Returns the bell that wakes this process while it is stopped with its command; -1: none.  It is
 * rung for every change of the queue, and the shell would see a stopped job continued.  So only a
 * preemptible job is woken, whose GPUs another job waits for.
 */
static int watched_stopped_bell(const struct watched *watched)
{
	const struct broker *broker = watched->broker;

	return broker->ticket.request.is_preemptible ? broker->bell_fd : -1;
}

/* Reads all changes of the command's state: stopped, continued, ended.  Then reaps orphans. */
static void watched_reap_command(struct watched *watched)
{
	int status;

	while (watched->command &&
		waitpid(watched->command, &status, WNOHANG | WUNTRACED | WCONTINUED) ==
			watched->command) {
		watched->is_stopped = WIFSTOPPED(status);
		if (WIFCONTINUED(status))
			continue;
		if (WIFSTOPPED(status)) {
			/*
			 * Stops this process as well, and returns when it is continued.  The guard
			 * wakes it for the limit, the warning and a window, but for no sample: a
			 * stopped job uses the memory that it used before.
			 */
			if (!watched->is_ending && command_is_stopped(watched))
				job_control_stop(watched->command, WSTOPSIG(status),
					watched_end_ms(watched),
					watched_stopped_bell(watched));
			continue;
		}
		watched->end->wait_status = status;
		watched->command = 0;
	}
	/* the command has ended by itself: record that first, reap its leftovers later */
	if (!watched->command && !watched->is_ending)
		return;
	reap_orphans(watched->broker, watched);
}

/* --- the loop ---------------------------------------------------------------------- */

/*
 * Takes a sample if one is due.  Reports each GPU of which the job uses more memory than it has
 * declared.
 */
static void watched_sample(const struct watched *watched)
{
	const struct job_observer *observer = watched->order->observer;
	struct sampler *sampler = watched->order->sampler;
	const struct sample_gpu *gpu;

	sampler_step(sampler, clock_boot_ms());
	if (observer)
		observer->sampled(observer->context, sampler);
	while ((gpu = sampler_take_excess(sampler))) {
		char line[256];
		struct text text = TEXT_ON(line);

		report_excess(gpu->now_mib, gpu->name.text, sampler->declared_mib, &text);
		note("job %llu%s", (unsigned long long)broker_job(watched->broker), line);
		if (observer)
			observer->exceeds(observer->context, gpu);
	}
}

/* Looks at how the job uses its GPUs, tells the job what that leads to, and ends it if it must. */
static void watched_watch_use(struct watched *watched)
{
	char line[USE_LINE_SIZE];
	int r = 0;

	if (!watched->is_ending && watched->command)
		r = use_watch_step(&watched->use, clock_boot_ms(), line);
	if (r != 0) {
		note("%s", line);
		notifier_tell(NOTIFIER_IDLE, broker_job(watched->broker), 0, line);
	}
	if (r == USE_WATCH_ENDS)
		watched_begin_ending(watched, CAUSE_UNUSED);
}

/* Sleeps until an event or @wake_ms, then samples and obeys signals and requests. */
static int watched_wait(struct watched *watched, int64_t wake_ms)
{
	struct sampler *sampler = watched->order->sampler;
	struct pollfd fds[OWN_FDS + SPAWN_POLL_FDS + PROBE_POLL_FDS] = {
		[SIGNAL_FD] = { watched->signal_fd, POLLIN, 0 },
		[BELL_FD] = { watched->broker->bell_fd, POLLIN, 0 },
	};
	unsigned count = OWN_FDS + use_watch_poll_fds(&watched->use, fds + OWN_FDS);
	int timeout = alarm_set(&watched->alarm, wake_ms, &fds[ALARM_FD]);

	count += sampler ? sampler_poll_fds(sampler, fds + count) : 0;

	if (poll(fds, count, timeout) < 0 && errno != EINTR)
		return -errno;
	if (sampler)
		watched_sample(watched);
	watched_watch_use(watched);
	watched_read_signals(watched);
	if (fds[BELL_FD].revents)
		(void)watched_obey_requests(watched);
	return 0;
}

/*
 * Does what is due at @now_ms.  Returns false once the command and, in a teardown, all that it has
 * started have ended.  Else returns true and sets *@ret_wake_ms, the time of the next step.
 */
static bool watched_step(struct watched *watched, int64_t now_ms, int64_t *ret_wake_ms)
{
	int64_t wake_ms;

	if (!watched->is_ending && !watched->command)
		return false;
	if (now_ms >= watched->note_ms)
		watched_note_command(watched);
	if (now_ms >= watched->window_at_ms)
		watched_obey_windows(watched);
	if (!watched->is_ending && watched->limit_cause == CAUSE_LIMIT &&
		now_ms >= watched_limit_due_ms(watched))
		watched_read_limit(watched);
	if (now_ms >= watched->warn_at_ms)
		command_warn(watched);
	/* a command that has just ended by itself is reaped in the next round */
	if (!watched->is_ending && now_ms >= watched->limit_at_ms &&
		command_is_alive(watched))
		watched_begin_ending(watched, watched->limit_cause);
	*ret_wake_ms = watched_wake_ms(watched);
	if (!watched->is_ending)
		return true;
	watched->limit_at_ms = watched->warn_at_ms = watched->window_at_ms = INT64_MAX;
	watched->teardown.command = watched->command;
	watched->teardown.helper = (uint32_t)watched->job_control.witness.pid;
	if (teardown_step(&watched->teardown, now_ms, &wake_ms) != TEARDOWN_LATER)
		return false;
	*ret_wake_ms = min_i64(watched_wake_ms(watched), wake_ms);
	return true;
}

/* Watches the command until it has ended.  Returns 0 or a negative errno. */
static int watched_run(struct watched *watched)
{
	int64_t wake_ms;
	int r = 0;

	for (;;) {
		watched_reap_command(watched);
		if (!watched_step(watched, clock_boot_ms(), &wake_ms))
			return 0;
		r = watched_wait(watched, wake_ms);
		if (r < 0)
			return r;
	}
}

/*
 * Whether the user has ended the job by a signal: any ending signal to this process, or a TERM to
 * the command alone that killed it.
 */
static bool was_ended_by_user(const struct watched *watched)
{
	int status = watched->end->wait_status;

	return watched->end->was_told ||
	       (!watched->is_ending && watched->order->warn_signal != SIGTERM &&
		       WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

/* Sets why the attempt has ended, if the status alone does not say so.  Rules: see supervise.h. */
static void watched_find_cause(struct watched *watched)
{
	struct attempt_end *end = watched->end;
	int status = end->wait_status, done_status = watched->order->done_status;
	/* whether the job goes back into the queue */
	bool is_back =
		watched->limit_cause == CAUSE_PREEMPT || watched->order->is_sent_back;
	bool is_users;

	if (end->cause == CAUSE_CANCEL || end->cause == CAUSE_UNUSED ||
		end->cause == CAUSE_REQUEUE)
		return;
	end->is_done = done_status >= 0 && WIFEXITED(status) &&
		       WEXITSTATUS(status) == done_status &&
		       (is_back || !watched->is_ending);
	if (!watched->is_ending && !watched->has_warned)
		return;
	if (is_back) {
		/*
		 * if the user ended a job that was asked to give way, that was no preemption; but a
		 * job that reached its limit has timed out, whatever the user did
		 */
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

/*
 * In the child: waits until the lease names it.  If the parent dies before that, the pipe ends
 * without a byte, and the child must not run: no reader could know that it is the job.
 */
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

/*
 * Forks the command.  The child sleeps in await_note() until this process has noted it in the
 * lease, so that a supervisor that is killed leaves no running command that the lease does not
 * name.  If a lease file is locked just then, the command starts all the same; until the next try
 * only the FIFO shows that it lives.
 */
static int command_fork(struct watched *watched)
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
		watched_note_command(watched);
		/* job control must see every signal to the group from the command's start on */
		if (!is_in_background())
			job_control_begin(&watched->job_control);
		(void)!write(ends[1], "!", 1);
	}
	close_fd(&ends[1]);
	return watched->command < 0 ? -error : 0;
}

/*
 * Asks the observer for its consent, sets the limit and starts the command.  Returns 0 or -errno.
 */
static int watched_start(struct watched *watched)
{
	const struct supervision *order = watched->order;
	int r = 0;

	if (order->observer)
		r = order->observer->starts(order->observer->context, order->broker,
			order->launch, order->waited_ms);
	if (r < 0)
		return r;
	if (order->use)
		use_watch_begin(&watched->use, order->use, broker_job(order->broker),
			order->use_interval_ms);
	watched->limit_ms = order->limit_ms;
	watched_set_limit(watched);
	r = command_fork(watched);
	if (r == 0)
		watched_obey_windows(watched);
	return r;
}

void supervise_prepare(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

int supervise(const struct supervision *supervision, struct attempt_end *ret)
{
	struct watched watched = {
		.order = supervision,
		.broker = supervision->broker,
		.end = ret,
		.begun_ms = clock_boot_ms(),
		.note_ms = INT64_MAX,
		.limit_at_ms = INT64_MAX,
		.warn_at_ms = INT64_MAX,
		.window_at_ms = INT64_MAX,
		.limit_cause = CAUSE_LIMIT,
		.teardown = TEARDOWN_OF(supervision->broker, supervision->grace_ms),
		.use = USE_WATCH_NONE,
	};
	int r;

	*ret = (struct attempt_end){ .cause = CAUSE_ITSELF };
	/*
	 * before the fork: no signal may fall between the start of the command and its supervision
	 */
	r = watched_open_signals(&watched);
	if (r < 0)
		return r;
	r = watched_start(&watched);
	if (r == 0)
		r = watched_run(&watched);
	/* a command may have asked for its own job, and have ended before the bell was heard */
	if (r == 0 && broker_read_orders(watched.broker) == BROKER_ORDER_REQUEUE)
		watched_obey_requeue(&watched);
	watched_find_cause(&watched);
	ret->ran_ms = clock_boot_ms() - watched.begun_ms;
	job_control_end(&watched.job_control);
	watched_close_signals(&watched);
	teardown_release(&watched.teardown);
	use_watch_end(&watched.use);
	ret->use = watched.use.last;
	alarm_release(&watched.alarm);
	return r;
}

/* --- afterwards -------------------------------------------------------------------- */

void supervise_end_leftovers(const struct supervision *supervision)
{
	struct teardown teardown =
		TEARDOWN_OF(supervision->broker, supervision->grace_ms);
	sigset_t child, before;
	int64_t now_ms, wake_ms;

	/*
	 * SIGCHLD is blocked so that sigtimedwait(2) can wait for it.  Signals that would end this
	 * process are blocked already (queueing_hold_signals()) and wait until it is in the queue
	 * again.
	 */
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

/* Dies of the signal, without a core file: the command has left its own, if any. */
static void die_of_signal(int number)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t one;

	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)sigaction(number, &usual, NULL);
	(void)sigemptyset(&one);
	(void)sigaddset(&one, number);
	/* a blocked signal stays pending until it is unblocked */
	(void)raise(number);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

int supervise_exit_like(const struct attempt_end *end)
{
	if (end->cause != CAUSE_LIMIT && end->cause != CAUSE_UNUSED &&
		WIFSIGNALED(end->wait_status))
		die_of_signal(WTERMSIG(end->wait_status));
	return attempt_exit_status(end);
}
