#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "clock.h"
#include "fdio.h"
#include "job_control.h"
#include "owner.h"

enum {
	COMMAND_FD, /* descriptors in the guard */
	BELL_FD,
	GUARD_FDS,

	ANSWER_MS = 1000, /* for the witness to answer; it may have been killed */
	LOOK_MS = 1000,   /* between the guard's looks at the command */
	WAKE_MS = 10,     /* between the guard's signals to the parent */
};

/*
 * In a child: blocks all signals, and has the kernel kill it when the parent dies.  The parent may
 * be dead before prctl(2) has taken effect, so the child checks once.
 */
static void child_attach(pid_t parent, const char *name)
{
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_NAME, name);
	if (getppid() != parent)
		_exit(0);
}

static void child_end(pid_t *pid)
{
	if (*pid <= 0)
		return;
	(void)kill(*pid, SIGKILL);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

/* --- the witness ------------------------------------------------------------------- */

/*
 * The witness: answers, as often as its parent asks, whether a signal is pending here.  It closes
 * all other descriptors, above all the lease's FIFO, which it must not keep.
 */
static _Noreturn void witness_main(pid_t parent, int fd)
{
	unsigned char signal;

	child_attach(parent, "gpulease-group");
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

void job_control_begin(struct job_control *job_control)
{
	struct job_control_witness *witness = &job_control->witness;
	pid_t parent = getpid();
	int ends[2];

	witness->pid = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return;
	witness->pid = fork();
	if (witness->pid == 0)
		witness_main(parent, ends[1]);
	close_fd(&ends[1]);
	if (witness->pid > 0) {
		witness->fd = ends[0];
		return;
	}
	close_fd(&ends[0]);
	witness->pid = 0;
}

static void witness_end(struct job_control_witness *witness)
{
	if (witness->pid)
		close_fd(&witness->fd);
	child_end(&witness->pid);
}

/*
 * Continues the witness if it is stopped: the group was stopped, and then only the supervisor was
 * continued.  The witness has to run to answer.
 */
static void witness_wake(pid_t pid)
{
	siginfo_t stop = { .si_pid = 0 };

	if (waitid(P_PID, (id_t)pid, &stop, WSTOPPED | WNOHANG) == 0 && stop.si_pid)
		(void)kill(pid, SIGCONT);
}

/*
 * Asks the witness whether @signal is pending in it.  /proc/PID/status would say so, too, but hides
 * the process if gpulease has the rights of a group (setgid).
 */
static bool witness_has_pending(
	const struct job_control_witness *witness, unsigned signal)
{
	struct pollfd answers = { .fd = witness->fd, .events = POLLIN };
	unsigned char question = (unsigned char)signal, answer = 0;

	witness_wake(witness->pid);
	while (recv(witness->fd, &answer, 1, MSG_DONTWAIT) == 1)
		; /* drop an answer that came too late for an earlier question */
	if (send(witness->fd, &question, 1, MSG_NOSIGNAL) != 1 ||
		poll(&answers, 1, ANSWER_MS) != 1)
		return false;
	return recv(witness->fd, &answer, 1, MSG_DONTWAIT) == 1 && answer;
}

/*
 * Replaces the witness: a signal that is pending in it stays pending, so it could not show the next
 * one of the same number.
 */
static void witness_replace(struct job_control *job_control)
{
	witness_end(&job_control->former);
	job_control->former = job_control->witness;
	job_control_begin(job_control);
}

bool job_control_reached_all(struct job_control *job_control, pid_t command,
	const struct signalfd_siginfo *info)
{
	bool is_for_all;

	if (job_control->witness.pid &&
		witness_has_pending(&job_control->witness, info->ssi_signo)) {
		witness_replace(job_control);
		is_for_all = true;
	} else if (job_control->former.pid) {
		/* another signal to the group may have come before the new witness was there */
		is_for_all = witness_has_pending(&job_control->former, info->ssi_signo);
	} else {
		/*
		 * Without a witness: signals of the terminal come from the kernel and go to the
		 * group.  Only HUP goes first to the session's leader alone.
		 */
		is_for_all = !job_control->witness.pid && info->ssi_code == SI_KERNEL &&
			     getsid(0) != getpid();
	}
	return is_for_all && getpgid(command) == getpgrp();
}

void job_control_has_read_all(struct job_control *job_control)
{
	witness_end(&job_control->former);
}

static void witness_forget(struct job_control_witness *witness, pid_t pid)
{
	if (witness->pid != pid)
		return;
	close_fd(&witness->fd);
	witness->pid = 0;
}

void job_control_forget(struct job_control *job_control, pid_t pid)
{
	witness_forget(&job_control->witness, pid);
	witness_forget(&job_control->former, pid);
}

void job_control_end(struct job_control *job_control)
{
	witness_end(&job_control->former);
	witness_end(&job_control->witness);
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

/* Whether @command runs again or has ended.  A process that /proc hides counts as still stopped. */
static bool command_has_moved(pid_t command)
{
	struct process_stat stat;

	return process_stat_read((uint32_t)command, &stat) == 0
		       ? !strchr("Tt", stat.state)
		       : kill(command, 0) < 0 && errno == ESRCH;
}

/*
 * In the guard: waits until @command runs again or has ended, @wake_ms has come, or the bell rings.
 * The kernel reports that a process was continued only to its parent, which is stopped here, so the
 * guard looks once a second.
 */
static void guard_wait(pid_t command, bool has_pidfd, bool has_bell, int64_t wake_ms)
{
	while (!command_has_moved(command)) {
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

/* The guard: waits, and then continues its parent. */
static _Noreturn void guard_main(
	pid_t parent, pid_t command, int64_t wake_ms, int bell_fd)
{
	autofd int pidfd = pidfd_open_process((uint32_t)command);
	bool has_pidfd = pidfd >= 0;

	child_attach(parent, "gpulease-guard");
	/* out of the group, which the shell stops and continues as a whole */
	(void)setsid();
	(void)close(COMMAND_FD);
	(void)close(BELL_FD);
	if (has_pidfd)
		(void)!dup2(pidfd, COMMAND_FD);
	if (bell_fd >= 0)
		(void)!dup2(bell_fd, BELL_FD);
	fdio_close_from(GUARD_FDS);
	guard_wait(command, has_pidfd, bell_fd >= 0, wake_ms);
	/* repeated: the parent may not have stopped yet; once it runs again it kills the guard */
	for (;;) {
		(void)kill(parent, SIGCONT);
		(void)poll(NULL, 0, WAKE_MS);
	}
}

/*
 * Stops this process by the default action of @signal.  In an orphaned process group the kernel
 * ignores TSTP, TTIN and TTOU: no shell could continue it.
 */
static void stop_by_signal(int signal)
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

void job_control_stop(pid_t command, int signal, int64_t wake_ms, int bell_fd)
{
	pid_t parent = getpid(), child;

	if (!has_terminal())
		return;
	child = fork();
	if (child == 0)
		guard_main(parent, command, wake_ms, bell_fd);
	stop_by_signal(signal);
	child_end(&child);
}
