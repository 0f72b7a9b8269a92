#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "diag.h"
#include "execute.h"
#include "exitcodes.h"
#include "job_control.h"
#include "parse.h"
#include "step_parent.h"

struct step_parent {
	pid_t command;
	int signal_fd;
	sigset_t mask; /* that this process was started with */
	struct job_control job_control;
};

/* Lets the command inherit no lock.  Returns 0, or -EINVAL if @list is no list of open files. */
static int keep_locks(const char *list)
{
	while (*list) {
		char word[12];
		size_t size = strcspn(list, ",");
		uint64_t fd;

		if (size >= sizeof(word))
			return -EINVAL;
		memcpy(word, list, size);
		word[size] = '\0';
		if (parse_u64(word, INT32_MAX, &fd, NULL) < 0 ||
			fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
			return -EINVAL;
		list += size + (list[size] == ',');
	}
	return 0;
}

static int open_signals(struct step_parent *step)
{
	static const int passed[] = { SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGCHLD };
	sigset_t set;

	/* a process that ignores it cannot learn how its child ends */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(passed); i++)
		(void)sigaddset(&set, passed[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &step->mask);
	step->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return step->signal_fd < 0 ? -errno : 0;
}

static _Noreturn void become_command(
	const struct step_parent *step, pid_t parent, char **words)
{
	extern char **environ;
	struct why why = WHY_NONE;
	int status;

	/* a parent that ended before this call sends no signal */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(EXIT_MISUSE);
	(void)sigprocmask(SIG_SETMASK, &step->mask, NULL);
	status = execute(words[0], words + 1, environ, &why);
	diag("%s", why.text);
	_exit(status);
}

/* Ends this process as the command has ended; the command has left its own core file, if any. */
static int exit_like(int wait_status)
{
	sigset_t one;
	int number;

	if (!WIFSIGNALED(wait_status))
		return WEXITSTATUS(wait_status);
	number = WTERMSIG(wait_status);
	(void)setrlimit(RLIMIT_CORE, &(struct rlimit){ 0 });
	(void)signal(number, SIG_DFL);
	(void)sigemptyset(&one);
	(void)sigaddset(&one, number);
	(void)raise(number);
	(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
	return 128 + number;
}

/* Reaps children.  Whether the command has ended; *@ret_status is then the status of wait(2). */
static bool reap(struct step_parent *step, int *ret_status)
{
	pid_t pid;

	while ((pid = waitpid(-1, ret_status, WNOHANG | WUNTRACED)) > 0) {
		if (pid != step->command)
			job_control_forget(&step->job_control, pid);
		else if (!WIFSTOPPED(*ret_status))
			return true;
		else
			job_control_stop(pid, WSTOPSIG(*ret_status), INT64_MAX, -1);
	}
	return false;
}

/* Passes signals on until the command has ended.  Returns the status of wait(2). */
static int watch(struct step_parent *step)
{
	struct pollfd signals = { .fd = step->signal_fd, .events = POLLIN };
	struct signalfd_siginfo info;
	int status;

	while (!reap(step, &status)) {
		(void)poll(&signals, 1, -1);
		while (read(step->signal_fd, &info, sizeof(info)) == sizeof(info))
			/* the command is not reaped yet, so its pid is its own */
			if (info.ssi_signo != SIGCHLD &&
				!job_control_reached_all(
					&step->job_control, step->command, &info))
				(void)kill(step->command, (int)info.ssi_signo);
		job_control_has_read_all(&step->job_control);
	}
	return status;
}

int step_parent_main(char **argv)
{
	struct step_parent step = { .signal_fd = -1 };
	pid_t self = getpid();
	int r, status;

	if (!argv[1] || !argv[2] || !argv[3] || keep_locks(argv[1]) < 0) {
		diag("gpulease starts this program itself: gpulease --exclusive command");
		return EXIT_MISUSE;
	}
	r = open_signals(&step);
	if (r == 0) {
		step.command = fork();
		r = step.command < 0 ? -errno : 0;
	}
	if (r < 0) {
		diag("cannot start the step: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	if (step.command == 0)
		become_command(&step, self, argv + 2);
	job_control_begin(&step.job_control);
	status = watch(&step);
	job_control_end(&step.job_control);
	return exit_like(status);
}
