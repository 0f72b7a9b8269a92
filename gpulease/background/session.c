#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "diag.h"
#include "exitcodes.h"
#include "find_program.h"
#include "job_step.h"
#include "owner.h"
#include "privilege.h"
#include "rights.h"
#include "rlimits.h"
#include "session.h"
#include "session_list.h"
#include "session_socket.h"

enum {
	START_MS = 10000, /* for tmux or screen to begin the session */
	START_TRIES = 10, /* a server of tmux that is about to end fails its clients … */
	AGAIN_MS = 100,   /* … so there is another try after this time */
	FLUSH_MS = 2000,
	NAMED_TRIES = 3,
	/* exit statuses of the process that runs tmux or screen: up to this theirs, else + errno */
	RUN_FAILED = 127,
};

static const char no_program[] = "--screen needs tmux or screen, and neither is in PATH; "
				 "install one, or use --submit";

/* The session of this process. */
static struct {
	char name[SESSION_NAME_SIZE], token[TOKEN_SIZE];
	enum session_program program;
	int relay_fd; /* the socket; -1: there is no session */
} session = { .relay_fd = -1 };

/* --- beginning --------------------------------------------------------------------- */

int session_check(struct why *why)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < SESSION_PROGRAMS; i++)
		if (find_program(session_programs[i], path) == 0)
			return 0;
	why_set(why, "%s", no_program);
	return -ENOENT;
}

/* Runs tmux or screen, which then starts the relay.  Returns as session_run() does. */
static int session_run_program(void)
{
	static char exe[PATH_MAX];
	/* the user's configuration may end each session that no client shows */
	char *const tmux[] = { (char *)"tmux", (char *)"new-session", (char *)"-d",
		(char *)"-s", session.name, exe, (char *)"--enter-session", session.token,
		(char *)";", (char *)"set-option", (char *)"-t", session.name,
		(char *)"destroy-unattached", (char *)"off", NULL };
	char *const screen[] = { (char *)"screen", (char *)"-d", (char *)"-m",
		(char *)"-S", session.name, exe, (char *)"--enter-session", session.token,
		NULL };

	if (readlink("/proc/self/exe", exe, sizeof(exe) - 1) < 0)
		return -errno;
	return session_run(session.program == SESSION_TMUX ? tmux : screen, NULL, 0);
}

/*
 * Calls @act in a new process that has the user's rights alone and belongs to no lease, because
 * @act uses programs and folders that the user names.  Returns what @act returns: an exit status or
 * a negative errno.
 */
static int session_act_as_user(int (*act)(void))
{
	pid_t child = fork();
	int status = 0, r;

	if (child < 0)
		return -errno;
	if (child == 0) {
		r = privilege_drop();
		job_step_leave();
		if (r == 0)
			r = act();
		_exit(r < 0 ? RUN_FAILED - r : r > RUN_FAILED ? RUN_FAILED : r);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (!WIFEXITED(status))
		return -EIO;
	status = WEXITSTATUS(status);
	return status > RUN_FAILED ? RUN_FAILED - status : status;
}

/*
 * Begins a session in ->program and waits for its relay.  Returns 0, the exit status of the
 * program, or a negative errno (-ENOENT: the program is not there).
 */
static int session_start_relay(int listen_fd)
{
	int r = 0;

	for (unsigned tries = 0; tries < START_TRIES; tries++) {
		r = session_act_as_user(session_run_program);
		if (r < 0)
			return r;
		session.relay_fd =
			session_socket_accept(listen_fd, r == 0 ? START_MS : AGAIN_MS);
		if (session.relay_fd >= 0)
			return 0;
		if (r == 0)
			return take_fd(&session.relay_fd);
	}
	return r;
}

int session_begin(void)
{
	autofd int listen_fd = -1;
	int r = token_make(session.token);

	if (r == 0)
		listen_fd = r = session_socket_listen(session.token);
	(void)snprintf(session.name, sizeof(session.name), SESSION_PREFIX "new-%s",
		session.token);
	for (unsigned i = 0; listen_fd >= 0 && i < SESSION_PROGRAMS; i++) {
		session.program = (enum session_program)i;
		r = session_start_relay(listen_fd);
		if (r != -ENOENT)
			break;
	}
	rlimits_obey_terminal();
	if (r == 0)
		return 0;
	if (r == -ENOENT)
		diag("%s", no_program);
	else if (r > 0)
		diag("%s could not begin a session (exit status %d); --submit needs none",
			session_programs[session.program], r);
	else
		diag("the session in %s has not begun: %s; --submit needs none",
			session_programs[session.program], strerror(-r));
	return EXIT_MISUSE;
}

/* --- the name ---------------------------------------------------------------------- */

/* What session_rename() needs; set before the fork. */
static struct {
	uint64_t job;
	char wanted[SESSION_NAME_SIZE];
} renaming;

/*
 * Makes the name gpulease-ID-NAME.  A character of @name that tmux or screen would treat specially
 * becomes "_".
 */
static void session_choose_name(
	const struct context *context, uint64_t job, const char *name)
{
	uint32_t queue = session_queue(context);
	struct text text = TEXT_ON(renaming.wanted);

	renaming.job = job;
	text_addf(&text, SESSION_PREFIX "%llu", (unsigned long long)job);
	if (queue)
		text_addf(&text, "_%06x", queue);
	text_addf(&text, "-%.40s", name);
	for (char *at = renaming.wanted; *at; at++)
		if (!strchr("-_", *at) && !(*at >= '0' && *at <= '9') &&
			!((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z'))
			*at = '_';
}

static bool session_exists(const struct session *all, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].name, name) == 0)
			return true;
	return false;
}

/*
 * Renames the session to @wanted, if no session has that name: tmux would refuse a second one,
 * screen would not.  Returns true if the session is renamed, or has ended meanwhile.
 */
static bool session_rename_to(char *wanted)
{
	char *const tmux[] = { (char *)"tmux", (char *)"rename-session", (char *)"-t",
		session.name, wanted, NULL };
	char *const screen[] = { (char *)"screen", (char *)"-S", session.name,
		(char *)"-X", (char *)"sessionname", wanted, NULL };
	autofree struct session *all = NULL;
	size_t count;

	if (session_list(&all, &count) < 0 || session_exists(all, count, wanted))
		return false;
	return !session_exists(all, count, session.name) ||
	       session_run(session.program == SESSION_TMUX ? tmux : screen, NULL, 0) == 0;
}

/* Names the session by the job's id; with a random suffix if that name is taken.  Returns 0. */
static int session_rename(void)
{
	char other[SESSION_NAME_SIZE], token[TOKEN_SIZE];

	text_copy(other, sizeof(other), renaming.wanted);
	for (unsigned tries = 0; tries < NAMED_TRIES; tries++) {
		struct text text;

		if (session_rename_to(other))
			return 0;
		text = TEXT_ON(other);
		if (token_make(token) == 0)
			text_addf(&text, "%s-%.4s", renaming.wanted, token);
	}
	note("cannot rename the session of job %llu to '%s'; its name is '%s'",
		(unsigned long long)renaming.job, renaming.wanted, session.name);
	return 0;
}

/* --- the terminal ------------------------------------------------------------------ */

/*
 * Opens a pseudoterminal and makes it the controlling terminal of this process.  Returns the
 * terminal, and the end of the relay in *@ret_relay_end; or a negative errno.
 */
static int session_open_terminal(int *ret_relay_end)
{
	char name[64];
	int terminal = -1;

	rights_as_user_begin(); /* the terminal must not get the lent group */
	*ret_relay_end = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*ret_relay_end >= 0 && unlockpt(*ret_relay_end) == 0 &&
		ptsname_r(*ret_relay_end, name, sizeof(name)) == 0)
		terminal = open(name, O_RDWR | O_CLOEXEC);
	if (terminal < 0)
		terminal = -errno;
	rights_as_user_end();
	return terminal;
}

int session_enter(const struct context *context, uint64_t job, const char *name, int log)
{
	autofd int relay_end = -1;
	autofd int terminal = session_open_terminal(&relay_end);
	int r = terminal;

	if (r >= 0)
		r = session_socket_send(session.relay_fd, (int[]){ relay_end, log });
	if (r < 0) {
		diag("cannot show job %llu in its session: %s", (unsigned long long)job,
			strerror(-r));
		return r;
	}
	/* after this, the terminal has the size of the session */
	(void)session_flush();
	session_choose_name(context, job, name);
	(void)!session_act_as_user(session_rename);
	return take_fd(&terminal);
}

bool session_flush(void)
{
	struct pollfd fds = { .fd = session.relay_fd, .events = POLLIN };
	char byte = 0;

	if (session.relay_fd < 0)
		return true;
	/* drop an answer that came too late for an earlier question */
	while (recv(session.relay_fd, &byte, 1, MSG_DONTWAIT) == 1)
		;
	if (send(session.relay_fd, &byte, 1, MSG_NOSIGNAL) != 1)
		return true;
	while (poll(&fds, 1, FLUSH_MS) < 0 && errno == EINTR)
		;
	return recv(session.relay_fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 1 || !byte;
}
