#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "exitcodes.h"
#include "slurm_ask.h"
#include "srun_process.h"

enum { ERROR_FD = 3 }; /* SRUN_ERROR_OPTION */

/* --- which way the streams go -------------------------------------------------------------- */

/* Whether both descriptors lead to one file, so that the order of their output can be seen. */
static bool is_one_file(int a, int b)
{
	struct stat left, right;

	return fstat(a, &left) == 0 && fstat(b, &right) == 0 &&
	       left.st_dev == right.st_dev && left.st_ino == right.st_ino &&
	       left.st_rdev == right.st_rdev;
}

/* Whether writes to @fd fail once another process has ended. */
static bool has_reader(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

bool srun_may_read_input(void)
{
	return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void srun_streams_find(bool may_be_pty, bool is_pty, struct srun_streams *streams)
{
	bool is_terminal = isatty(STDIN_FILENO) && srun_may_read_input();

	streams->is_pty =
		is_terminal && (is_pty || (may_be_pty && isatty(STDOUT_FILENO) &&
						  isatty(STDERR_FILENO)));
	if (streams->is_pty)
		return;
	streams->copies_input = !streams->has_input_file && isatty(STDIN_FILENO);
	streams->copies_output = !streams->has_output_file && has_reader(STDOUT_FILENO);
	if (streams->has_error_file)
		return;
	streams->merges = is_one_file(STDOUT_FILENO, STDERR_FILENO);
	streams->copies_error = !streams->merges;
}

/* --- starting it --------------------------------------------------------------------------- */

/* The ends of the pipes that srun gets; -1: none. */
struct ends {
	int message, output, error, input;
};

static _Noreturn void become_srun(
	pid_t parent, const struct ends *ends, char *const *words)
{
	sigset_t none;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGQUIT);
	if (getppid() != parent)
		_exit(EXIT_MISUSE);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGQUIT, SIG_DFL);
	if (ends->input >= 0)
		(void)dup2(ends->input, STDIN_FILENO);
	if (ends->output >= 0)
		(void)dup2(ends->output, STDOUT_FILENO);
	/* where main() has opened /dev/null: srun hangs if one of them is closed */
	(void)fcntl(STDIN_FILENO, F_SETFD, 0);
	(void)fcntl(STDOUT_FILENO, F_SETFD, 0);
	if (ends->error >= 0)
		(void)dup2(ends->error, ERROR_FD);
	(void)dup2(ends->message, STDERR_FILENO);
	(void)execvp(words[0], words);
	_exit(EXIT_NOT_FOUND);
}

/* Makes a pipe; none of its ends is a low number that become_srun() needs. */
static int make_pipe(int *ret_read, int *ret_write)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_read = fcntl(fds[0], F_DUPFD_CLOEXEC, 10);
	*ret_write = fcntl(fds[1], F_DUPFD_CLOEXEC, 10);
	r = *ret_read < 0 || *ret_write < 0 ? -errno : 0;
	(void)close(fds[0]);
	(void)close(fds[1]);
	return r;
}

static int make_pipes(
	const struct srun_streams *streams, struct srun_process *srun, struct ends *ends)
{
	int r = make_pipe(&srun->message_fd, &ends->message);

	if (r == 0 && streams->copies_output)
		r = make_pipe(&srun->output_fd, &ends->output);
	if (r == 0 && streams->copies_error)
		r = make_pipe(&srun->error_fd, &ends->error);
	if (r == 0 && streams->copies_input)
		r = make_pipe(&ends->input, &srun->input_fd);
	if (srun->message_fd >= 0)
		(void)fcntl(srun->message_fd, F_SETFL, O_NONBLOCK);
	if (srun->output_fd >= 0)
		(void)fcntl(srun->output_fd, F_SETFL, O_NONBLOCK);
	if (srun->error_fd >= 0)
		(void)fcntl(srun->error_fd, F_SETFL, O_NONBLOCK);
	return r;
}

int srun_start(const struct srun_streams *streams, const struct slurm_words *words,
	struct srun_process *ret)
{
	struct ends ends = { -1, -1, -1, -1 };
	pid_t parent = getpid();
	int r;

	*ret = SRUN_PROCESS_NONE;
	r = make_pipes(streams, ret, &ends);
	if (r == 0) {
		ret->has_terminal =
			streams->is_pty && tcgetattr(STDIN_FILENO, &ret->terminal) == 0;
		ret->pid = fork();
		if (ret->pid == 0)
			become_srun(parent, &ends, words->list);
		r = ret->pid < 0 ? -errno : 0;
	}
	close_fd(&ends.message);
	close_fd(&ends.output);
	close_fd(&ends.error);
	close_fd(&ends.input);
	return r;
}

/* --- its end ------------------------------------------------------------------------------- */

/* Makes @group that of the terminal.  In the background this is allowed while TTOU is ignored. */
static void set_terminal_group(pid_t group)
{
	void (*before)(int) = signal(SIGTTOU, SIG_IGN);

	(void)tcsetpgrp(STDIN_FILENO, group);
	(void)signal(SIGTTOU, before);
}

void srun_give_terminal(struct srun_process *srun)
{
	if (!srun->has_terminal || !srun->pid)
		return;
	set_terminal_group(srun->pid);
	/* it may have been too early, and stopped */
	(void)kill(-srun->pid, SIGCONT);
}

/* Takes the terminal back, and sets it as it was: srun may have been killed. */
static void take_terminal(struct srun_process *srun)
{
	set_terminal_group(getpgrp());
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &srun->terminal);
	srun->has_terminal = false;
}

bool srun_has_ended(struct srun_process *srun)
{
	if (srun->pid && waitpid(srun->pid, &srun->wait_status, WNOHANG) == srun->pid) {
		srun->pid = 0;
		close_fd(&srun->input_fd);
		if (srun->has_terminal)
			take_terminal(srun);
	}
	return !srun->pid;
}
