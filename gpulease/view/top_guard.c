#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "top_guard.h"

enum { FDS_MAX = 256 }; /* the viewer opens fewer */

/* Whether the modes are the same.  The padding of the structs does not count. */
static bool is_same(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag &&
	       a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

/*
 * Whether no other program uses the terminal: the group @viewer has it, or already that of a shell,
 * which is @shell or leads the session.
 */
static bool is_free(int tty_fd, pid_t viewer, pid_t shell)
{
	pid_t now = tcgetpgrp(tty_fd);

	return now < 0 || now == viewer || now == shell || now == getsid(0);
}

static void restore(int tty_fd, const struct termios *usual,
	const struct termios *changed, const char *leave)
{
	struct termios now;

	if (tcgetattr(tty_fd, &now) < 0)
		return;
	if (is_same(&now, changed)) { /* else the shell was faster, and has set its own */
		(void)tcsetattr(tty_fd, TCSANOW, usual);
		(void)tcflush(tty_fd, TCOFLUSH); /* so that there is room */
	}
	(void)!write(tty_fd, leave, strlen(leave));
}

/* No signal for the group of the viewer ends its guard, and no change of the modes stops it. */
static void be_alone(int pipe_fd, int tty_fd)
{
	sigset_t all;

	(void)setpgid(0, 0);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_NAME, "gpulease-guard");
	for (int fd = 0; fd < FDS_MAX; fd++)
		if (fd != pipe_fd && fd != tty_fd)
			(void)close(fd);
}

/* Waits for the end of the viewer.  Returns whether it needs no guard any more. */
static bool is_dismissed(int pipe_fd)
{
	char byte;
	ssize_t n;

	while ((n = read(pipe_fd, &byte, 1)) < 0 && errno == EINTR)
		;
	return n > 0;
}

void top_guard_begin(struct top_guard *guard, int tty_fd, const struct termios *usual,
	const struct termios *changed, const char *leave)
{
	pid_t viewer = getpgrp(), shell = getpgid(getppid());
	int fds[2];

	*guard = TOP_GUARD_NONE;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return;
	guard->pid = fork();
	if (guard->pid == 0) {
		be_alone(fds[0], tty_fd);
		if (!is_dismissed(fds[0]) && is_free(tty_fd, viewer, shell))
			restore(tty_fd, usual, changed, leave);
		_exit(0);
	}
	(void)close(fds[0]);
	guard->fd = fds[1];
	if (guard->pid < 0) {
		guard->pid = 0;
		close_fd(&guard->fd);
	}
}

void top_guard_end(struct top_guard *guard)
{
	if (guard->pid <= 0)
		return;
	(void)!write(guard->fd, "q", 1); /* fails if the guard was killed */
	close_fd(&guard->fd);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guard->pid = 0;
}
