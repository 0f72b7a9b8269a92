#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "clock.h"
#include "fdio.h"
#include "foreground.h"
#include "owner.h"

enum {
	COMMAND_FD, /* of the guard */
	BELL_FD,
	GUARD_FDS,

	ANSWER_MS = 1000, /* for a witness that has not been killed */
	LOOK_MS = 1000,
	WAKE_MS = 10,
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

/* Answers whether a signal is pending here, as often as its parent asks. */
static _Noreturn void testify(pid_t parent, int fd)
{
	unsigned char signal;

	attend(parent, "gpulease-group");
	(void)!dup2(fd, 0);
	fdio_close_from(1);
	while (recv(0, &signal, 1, 0) == 1) {
		sigset_t pending;
		bool answer =
			sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;

		if (send(0, &answer, 1, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

void foreground_begin(struct foreground *foreground)
{
	struct foreground_witness *witness = &foreground->witness;
	pid_t parent = getpid();
	int ends[2];

	witness->pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	witness->pid = fork();
	if (witness->pid == 0)
		testify(parent, ends[1]);
	close_fd(&ends[1]);
	if (witness->pid > 0) {
		witness->fd = ends[0];
		return;
	}
	close_fd(&ends[0]);
	witness->pid = 0;
}

static void end_witness(struct foreground_witness *witness)
{
	if (witness->pid)
		close_fd(&witness->fd);
	end_child(&witness->pid);
}

/* The group was stopped, and its parent alone continued: it has to run to answer. */
static void wake(pid_t pid)
{
	siginfo_t stop = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)pid, &stop, WSTOPPED | WNOHANG) == 0 && stop.si_pid)
		(void)kill(pid, SIGCONT);
}

/*
 * Whether @signal is pending for @witness.  It is asked itself, for where a group is lent /proc
 * may show nothing of it.
 */
static bool is_pending(const struct foreground_witness *witness, unsigned signal)
{
	struct pollfd answers = { .fd = witness->fd, .events = POLLIN };
	unsigned char question = (unsigned char)signal, answer = 0;

	wake(witness->pid);
	while (recv(witness->fd, &answer, 1, MSG_DONTWAIT) == 1)
		; /* one that came too late */
	if (send(witness->fd, &question, 1, MSG_NOSIGNAL) != 1 ||
		poll(&answers, 1, ANSWER_MS) != 1)
		return false;
	return recv(witness->fd, &answer, 1, MSG_DONTWAIT) == 1 && answer;
}

/* What is pending stays so: once it has been asked about, another takes its place. */
static void relieve(struct foreground *foreground)
{
	end_witness(&foreground->former);
	foreground->former = foreground->witness;
	foreground_begin(foreground);
}

bool foreground_reached_all(
	struct foreground *foreground, pid_t command, const struct signalfd_siginfo *info)
{
	bool is_for_all;

	if (foreground->witness.pid &&
		is_pending(&foreground->witness, info->ssi_signo)) {
		relieve(foreground);
		is_for_all = true;
	} else if (foreground->former.pid) {
		/* perhaps a second one, that came before the new witness */
		is_for_all = is_pending(&foreground->former, info->ssi_signo);
	} else {
		/* without a witness: the terminal's, but a hangup is first its leader's alone */
		is_for_all = !foreground->witness.pid && info->ssi_code == SI_KERNEL &&
			     getsid(0) != getpid();
	}
	return is_for_all && getpgid(command) == getpgrp();
}

void foreground_has_read_all(struct foreground *foreground)
{
	end_witness(&foreground->former);
}

static void forget(struct foreground_witness *witness, pid_t pid)
{
	if (witness->pid != pid)
		return;
	close_fd(&witness->fd);
	witness->pid = 0;
}

void foreground_forget(struct foreground *foreground, pid_t pid)
{
	forget(&foreground->witness, pid);
	forget(&foreground->former, pid);
}

void foreground_end(struct foreground *foreground)
{
	end_witness(&foreground->former);
	end_witness(&foreground->witness);
}

/* --- stopping ---------------------------------------------------------------------- */

static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}

/* Whether @command goes on or has ended; one that is not to be seen stands still. */
static bool has_moved(pid_t command)
{
	struct process_stat stat;

	return process_stat_read((uint32_t)command, &stat) == 0
		       ? !strchr("Tt", stat.state)
		       : kill(command, 0) < 0 && errno == ESRCH;
}

/*
 * Until @command goes on or has ended, the moment has come or the bell rings.  That it goes on
 * the kernel tells nobody but its parent, which is stopped: so it is looked at now and then.
 */
static void watch_over(pid_t command, bool has_pidfd, bool has_bell, int64_t wake_ms)
{
	while (!has_moved(command)) {
		struct pollfd fds[GUARD_FDS] = {
			[COMMAND_FD] = { has_pidfd ? COMMAND_FD : -1, POLLIN, 0 },
			[BELL_FD] = { has_bell ? BELL_FD : -1, POLLIN, 0 },
		};
		int64_t left_ms =
			wake_ms == INT64_MAX ? LOOK_MS : wake_ms - clock_boot_ms();

		if (left_ms <= 0 ||
			poll(fds, GUARD_FDS, (int)min_i64(left_ms, LOOK_MS)) > 0)
			return;
	}
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
	watch_over(command, has_pidfd, bell_fd >= 0, wake_ms);
	/* it may not have stopped yet; once it goes on it ends us */
	for (;;) {
		(void)kill(parent, SIGCONT);
		(void)poll(NULL, 0, WAKE_MS);
	}
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
