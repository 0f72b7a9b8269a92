#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>

#include "exitcodes.h"
#include "top_act.h"

/* --- words ------------------------------------------------------------------------------- */

int top_action_on_terminal(struct top_action *action, const struct settings *settings,
	const char *remote, const char *verb, int64_t job)
{
	char *const ssh[] = { (char *)"ssh", (char *)"-axt", (char *)"-oLogLevel=ERROR",
		(char *)"-oClearAllForwardings=yes", (char *)"-oRemoteCommand=none",
		(char *)"--", (char *)remote, action->command, NULL };

	(void)snprintf(action->job, sizeof(action->job), "%lld", (long long)job);
	if (remote) {
		(void)snprintf(action->command, sizeof(action->command), "gpulease %s %s",
			verb, action->job);
		memcpy(action->ssh, ssh, sizeof(ssh));
		action->words = action->ssh;
		return 0;
	}
	if (gpulease_words_begin(&action->here, settings) != 0)
		return EXIT_MISUSE;
	gpulease_words_add(&action->here, verb);
	gpulease_words_add(&action->here, action->job);
	action->words = action->here.list;
	return 0;
}

int top_action_cancel(struct top_action *action, const struct settings *settings,
	const char *remote, int64_t job)
{
	(void)snprintf(action->job, sizeof(action->job), "%lld", (long long)job);
	if (remote) {
		host_words_begin(&action->there, remote);
		host_words_add(&action->there, "--cancel");
		host_words_add(&action->there, action->job);
		host_words_add(&action->there, "--yes");
		action->words = action->there.list;
		return 0;
	}
	if (gpulease_words_begin(&action->here, settings) != 0)
		return EXIT_MISUSE;
	gpulease_words_add(&action->here, "--cancel");
	gpulease_words_add(&action->here, action->job);
	gpulease_words_add(&action->here, "--yes");
	action->words = action->here.list;
	return 0;
}

/* --- with the terminal -------------------------------------------------------------------- */

/* Makes @group the foreground of the terminal.  The caller may be in the background. */
static void give_terminal(int tty_fd, pid_t group)
{
	sigset_t tty_output, before;

	(void)sigemptyset(&tty_output);
	(void)sigaddset(&tty_output, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &tty_output, &before);
	(void)tcsetpgrp(tty_fd, group);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool is_in_foreground(int tty_fd)
{
	return tcgetpgrp(tty_fd) == getpgrp();
}

static _Noreturn void become_job(char *const *words, int tty_fd)
{
	sigset_t none;

	(void)setpgid(0, 0);
	give_terminal(tty_fd, getpid());
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)execvp(words[0], words);
	(void)dprintf(STDERR_FILENO, "gpulease: cannot execute '%s': %s\n", words[0],
		strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

void top_act_stop(int signal_number)
{
	sigset_t set;

	(void)signal(signal_number, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, signal_number);
	(void)raise(signal_number); /* blocked until the next line */
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
}

/* The job of the terminal, while this process waits for it. */
struct foreground {
	pid_t pid;
	int tty_fd, status, signal;
	bool is_stopped;
};

/* Looks whether the program has stopped or ended.  Returns whether it has ended. */
static bool look(struct foreground *job)
{
	while (waitpid(job->pid, &job->status, WNOHANG | WUNTRACED) == job->pid) {
		if (!WIFSTOPPED(job->status))
			return true;
		job->is_stopped = true;
		give_terminal(job->tty_fd, getpgrp());
		top_act_stop(SIGTSTP);
		/* CONT is read later, or was lost with this stop: no shell, no stop */
		if (is_in_foreground(job->tty_fd))
			(void)kill(getpid(), SIGCONT);
	}
	return false;
}

static void resume(struct foreground *job)
{
	/* continued in the background, this process waits for the next CONT */
	if (!job->is_stopped || !is_in_foreground(job->tty_fd))
		return;
	job->is_stopped = false;
	give_terminal(job->tty_fd, job->pid);
	(void)kill(-job->pid, SIGCONT);
}

static void obey(struct foreground *job, int number)
{
	if (number == SIGCONT)
		resume(job);
	if (number != SIGTERM && number != SIGHUP && number != SIGQUIT &&
		number != SIGINT)
		return;
	if (number != SIGINT) /* Ctrl-C is for the program alone */
		job->signal = number;
	(void)kill(-job->pid, number);
	(void)kill(-job->pid, SIGCONT);
}

int top_act_run(
	char *const *words, int tty_fd, int signal_fd, int *ret_status, int *ret_signal)
{
	struct foreground job = { .tty_fd = tty_fd };
	struct pollfd fd = { .fd = signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;
	struct termios modes;
	bool has_modes = tcgetattr(tty_fd, &modes) == 0;

	job.pid = fork();
	if (job.pid < 0)
		return -errno;
	if (job.pid == 0)
		become_job(words, tty_fd);
	(void)setpgid(job.pid, job.pid);
	give_terminal(tty_fd, job.pid);
	while (!look(&job)) {
		(void)poll(&fd, 1, -1);
		while (read(signal_fd, &info, sizeof(info)) == sizeof(info))
			obey(&job, (int)info.ssi_signo);
	}
	give_terminal(tty_fd, getpgrp());
	if (has_modes) /* a program that was killed may have left others */
		(void)tcsetattr(tty_fd, TCSANOW, &modes);
	*ret_status = job.status;
	*ret_signal = job.signal;
	return 0;
}

int top_act_wait_for_enter(int tty_fd, int signal_fd)
{
	struct signalfd_siginfo info;
	char byte = 0;

	while (byte != '\n') {
		struct pollfd fds[] = { { .fd = tty_fd, .events = POLLIN },
			{ .fd = signal_fd, .events = POLLIN } };

		(void)poll(fds, 2, -1);
		if (fds[0].revents && read(tty_fd, &byte, 1) <= 0 && errno != EAGAIN &&
			errno != EINTR)
			return SIGHUP;
		if (!fds[1].revents || read(signal_fd, &info, sizeof(info)) <= 0)
			continue;
		if (info.ssi_signo == SIGINT)
			return 0;
		if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP ||
			info.ssi_signo == SIGQUIT)
			return (int)info.ssi_signo;
		if (info.ssi_signo == SIGTSTP)
			top_act_stop(SIGTSTP);
	}
	return 0;
}
