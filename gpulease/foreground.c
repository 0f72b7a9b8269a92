#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "clock.h"
#include "fdio.h"
#include "foreground.h"
#include "owner.h"

enum {
	COMMAND_FD, /* of the guard */
	BELL_FD,
	GUARD_FDS,

	LOOK_MS = 250, /* where the kernel has no pidfd */
	NAP_MS = 3600 * 1000,
	STOP_TRIES = 1000, /* of 1 ms, until the parent has stopped */
};

/* In a child: ends with its parent, and is disturbed by nothing else. */
static void attend(pid_t parent, const char *name)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, name);
	if (getppid() != parent)
		_exit(0);
}

static void end_child(pid_t *pid)
{
	if (*pid <= 0)
		return;
	(void)kill(*pid, SIGKILL);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

/* --- the witness ------------------------------------------------------------------- */

void foreground_begin(struct foreground *foreground)
{
	pid_t parent = getpid();

	foreground->witness = fork();
	if (foreground->witness == 0) {
		attend(parent, "gpulease-group");
		fdio_close_from(0);
		for (;;)
			(void)pause();
	}
	if (foreground->witness < 0)
		foreground->witness = 0;
}

/* Whether @signal is pending for process @pid as a whole. */
static bool is_pending(pid_t pid, unsigned signal)
{
	char path[32], text[4096];
	unsigned long long pending = 0;
	const char *line;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (fdio_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	line = strstr(text, "\nShdPnd:");
	return line && sscanf(line, "\nShdPnd: %llx", &pending) == 1 &&
	       (pending >> (signal - 1) & 1);
}

/* What is pending stays so: once it has been asked about, another takes its place. */
static void relieve(struct foreground *foreground)
{
	end_child(&foreground->former);
	foreground->former = foreground->witness;
	foreground_begin(foreground);
}

bool foreground_reached_all(
	struct foreground *foreground, pid_t command, const struct signalfd_siginfo *info)
{
	bool is_for_all;

	if (foreground->witness && is_pending(foreground->witness, info->ssi_signo)) {
		relieve(foreground);
		is_for_all = true;
	} else if (foreground->former) {
		/* perhaps a second one, that came before the new witness */
		is_for_all = is_pending(foreground->former, info->ssi_signo);
	} else {
		/* without a witness: the terminal's, but a hangup is first its leader's alone */
		is_for_all = !foreground->witness && info->ssi_code == SI_KERNEL &&
			     getsid(0) != getpid();
	}
	return is_for_all && getpgid(command) == getpgrp();
}

void foreground_has_read_all(struct foreground *foreground)
{
	end_child(&foreground->former);
}

void foreground_forget(struct foreground *foreground, pid_t pid)
{
	if (foreground->witness == pid)
		foreground->witness = 0;
	if (foreground->former == pid)
		foreground->former = 0;
}

void foreground_end(struct foreground *foreground)
{
	end_child(&foreground->former);
	end_child(&foreground->witness);
}

/* --- stopping ---------------------------------------------------------------------- */

bool is_stopped(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read((uint32_t)pid, &stat) == 0 &&
	       (stat.state == 'T' || stat.state == 't');
}

static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}

static bool has_ended(pid_t pid)
{
	struct process_stat stat;

	return process_stat_read((uint32_t)pid, &stat) < 0 || stat.state == 'Z';
}

/* Until @command has ended, the moment has come or the bell rings. */
static void watch_over(pid_t command, bool has_pidfd, bool has_bell, int64_t wake_ms)
{
	for (;;) {
		struct pollfd fds[GUARD_FDS] = {
			[COMMAND_FD] = { has_pidfd ? COMMAND_FD : -1, POLLIN, 0 },
			[BELL_FD] = { has_bell ? BELL_FD : -1, POLLIN, 0 },
		};
		int64_t left_ms =
			wake_ms == INT64_MAX ? NAP_MS : wake_ms - clock_boot_ms();

		if (left_ms <= 0)
			return;
		left_ms = min_i64(left_ms, has_pidfd ? NAP_MS : LOOK_MS);
		if (poll(fds, GUARD_FDS, (int)left_ms) > 0)
			return;
		if (!has_pidfd && has_ended(command))
			return;
	}
}

/* Both of them were to stop; whether @command was continued before the parent had stopped. */
static bool is_out_of_step(pid_t parent, pid_t command)
{
	for (int tries = 0; tries < STOP_TRIES && !is_stopped(parent); tries++)
		(void)poll(NULL, 0, 1);
	return is_stopped(parent) && !is_stopped(command);
}

static _Noreturn void guard(pid_t parent, pid_t command, int64_t wake_ms, int bell_fd)
{
	autofd int pidfd = pidfd_open_process((uint32_t)command);
	bool has_pidfd = pidfd >= 0;

	attend(parent, "gpulease-guard");
	/* not in the group that is stopped and continued */
	(void)setsid();
	(void)close(COMMAND_FD);
	(void)close(BELL_FD);
	if (has_pidfd)
		(void)!dup2(pidfd, COMMAND_FD);
	if (bell_fd >= 0)
		(void)!dup2(bell_fd, BELL_FD);
	fdio_close_from(GUARD_FDS);
	if (!is_out_of_step(parent, command))
		watch_over(command, has_pidfd, bell_fd >= 0, wake_ms);
	(void)kill(parent, SIGCONT);
	_exit(0);
}

/* As by the signal itself; in a group without a shell that could see it nothing happens. */
static void stop_by(int signal)
{
	struct sigaction usual = { .sa_handler = SIG_DFL }, before;
	sigset_t one;

	(void)sigemptyset(&one);
	(void)sigaddset(&one, signal);
	if (signal != SIGSTOP && sigaction(signal, &usual, &before) < 0)
		return;
	(void)raise(signal);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
	(void)sigprocmask(SIG_BLOCK, &one, NULL);
	if (signal != SIGSTOP)
		(void)sigaction(signal, &before, NULL);
}

void foreground_stop(pid_t command, int signal, int64_t wake_ms, int bell_fd)
{
	pid_t parent = getpid(), child;

	if (!has_terminal())
		return;
	child = fork();
	if (child == 0)
		guard(parent, command, wake_ms, bell_fd);
	stop_by(signal);
	end_child(&child);
}
