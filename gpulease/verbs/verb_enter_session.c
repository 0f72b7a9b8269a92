/*
 * --enter-session TOKEN: the relay, the first process in a session of --screen (session.h); users
 * do not call it.  It gets the other end of the job's terminal, and the log, through the socket of
 * TOKEN.  What the user types goes to the job.  What the job prints goes to the session and, with
 * plain line ends, to the log.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>

#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "privilege.h"
#include "session_socket.h"
#include "verbs.h"

enum {
	KEYS, /* indexes of the array for poll(2): what the user types, */
	SIZE, /* a change of the size of the window, */
	JOB,  /* output of the job, */
	PEER, /* questions of the job's process */
	RELAY_FDS,

	CHUNK = 4096,
	CHUNKS_AT_END = 256, /* a process that the job has left may print without end */
};

static struct {
	struct pollfd fds[RELAY_FDS];
	int log;       /* -1: none */
	bool is_full;  /* the log could not be written … */
	char has_lost; /* … now or before: what answers questions of the job's process */
	bool has_return; /* a \r was read, and is not in the log yet */
	/* what the job has not read yet: it may print before it reads, so writing must not block */
	char typed[CHUNK];
	size_t typed_size;
} relay;

/*
 * Appends output to the log.  The terminal has changed each \n of the job to \r\n, which becomes \n
 * again.
 */
static void relay_log(const char *bytes, size_t size)
{
	char lines[2 * CHUNK];
	size_t used = 0;
	int r;

	for (size_t i = 0; i < size; i++) {
		if (relay.has_return && bytes[i] != '\n')
			lines[used++] = '\r';
		relay.has_return = bytes[i] == '\r';
		if (!relay.has_return)
			lines[used++] = bytes[i];
	}
	r = relay.log < 0 ? 0 : fdio_write(relay.log, lines, used);
	if (r < 0 && !relay.is_full)
		diag("cannot write the log: %s; it lacks what follows\r", strerror(-r));
	relay.is_full = r < 0;
	relay.has_lost |= relay.is_full;
}

/* Passes on a chunk of output.  Returns false if there is none now, or no more. */
static bool relay_output(void)
{
	char bytes[CHUNK];
	ssize_t n = read(relay.fds[JOB].fd, bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		relay.fds[JOB].fd = -1;
		return false;
	}
	relay_log(bytes, (size_t)n);
	return fdio_write(STDOUT_FILENO, bytes, (size_t)n) == 0;
}

/*
 * Answers a question of the job's process once all output is passed on.  Returns false if it has
 * ended.
 */
static bool relay_answer(void)
{
	char byte;
	bool is_asked = recv(relay.fds[PEER].fd, &byte, 1, 0) == 1;

	for (int i = 0; i < CHUNKS_AT_END && relay.fds[JOB].fd >= 0 && relay_output();
		i++)
		;
	return is_asked &&
	       send(relay.fds[PEER].fd, &relay.has_lost, 1, MSG_NOSIGNAL) == 1;
}

static void relay_resize(int job)
{
	struct winsize window;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &window) == 0)
		(void)ioctl(job, TIOCSWINSZ, &window);
}

/* Passes on what the user types.  Returns false if the session has no terminal any more. */
static bool relay_keys(void)
{
	ssize_t n;

	if (relay.fds[KEYS].revents && !relay.typed_size) {
		n = read(STDIN_FILENO, relay.typed, sizeof(relay.typed));
		if (n <= 0)
			return n < 0 && errno == EINTR;
		relay.typed_size = (size_t)n;
	}
	n = relay.typed_size ? write(relay.fds[JOB].fd, relay.typed, relay.typed_size)
			     : 0;
	if (n > 0) {
		relay.typed_size -= (size_t)n;
		memmove(relay.typed, relay.typed + n, relay.typed_size);
	}
	return true;
}

static void relay_run(void)
{
	struct signalfd_siginfo info;

	for (;;) {
		relay.fds[KEYS].events = relay.typed_size ? 0 : POLLIN;
		relay.fds[JOB].events = relay.typed_size ? POLLIN | POLLOUT : POLLIN;
		if (poll(relay.fds, RELAY_FDS, -1) < 0 && errno != EINTR)
			return;
		if (relay.fds[SIZE].revents) {
			(void)!read(relay.fds[SIZE].fd, &info, sizeof(info));
			relay_resize(relay.fds[JOB].fd);
		}
		if (relay.fds[JOB].revents & (POLLIN | POLLHUP | POLLERR))
			(void)relay_output();
		if (!relay_keys() || (relay.fds[PEER].revents && !relay_answer()))
			return;
	}
}

/*
 * Gives the job's terminal the modes and the size of the session's terminal, and makes that one
 * raw.
 */
static void relay_prepare(int job)
{
	struct termios modes;
	sigset_t resized;

	(void)sigemptyset(&resized);
	(void)sigaddset(&resized, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &resized, NULL);
	(void)signal(SIGXFSZ, SIG_IGN); /* the log may be full; the job goes on */
	relay.fds[SIZE].fd = signalfd(-1, &resized, SFD_CLOEXEC | SFD_NONBLOCK);
	relay_resize(job);
	if (tcgetattr(STDIN_FILENO, &modes) == 0) {
		(void)tcsetattr(job, TCSANOW, &modes);
		cfmakeraw(&modes);
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &modes);
	}
	(void)fcntl(job, F_SETFL, O_NONBLOCK);
}

int verb_enter_session(struct settings *settings)
{
	int peer = -1, ends[SESSION_FDS], r = privilege_drop();

	if (r == 0)
		peer = r = session_socket_connect(
			settings->verb.operand_count ? settings->verb.operands[0] : "");
	if (r >= 0)
		r = session_socket_receive(peer, ends);
	if (r < 0) {
		diag("cannot show the job of this session: %s", strerror(-r));
		return EXIT_MISUSE;
	}
	for (size_t i = 0; i < RELAY_FDS; i++)
		relay.fds[i].events = POLLIN;
	relay.fds[KEYS].fd = STDIN_FILENO;
	relay.fds[JOB].fd = ends[SESSION_TERMINAL];
	relay.fds[PEER].fd = peer;
	relay.log = ends[SESSION_LOG];
	relay_prepare(relay.fds[JOB].fd);
	relay_run();
	return EXIT_DONE;
}
