#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "background.h"
#include "diag.h"
#include "exitcodes.h"
#include "joblog_follow.h"
#include "joblog.h"
#include "process_lease.h"
#include "rlimits.h"
#include "parse.h"
#include "redirect.h"
#include "rights.h"
#include "job_step.h"
#include "session.h"

static struct {
	bool is_here;  /* this process is the one in the background */
	bool has_logs; /* there is a folder for logs; else -o names the file */
	int caller_fd; /* a socket to the caller, which waits for the id; -1: none */
	int terminal;  /* of the session that shows the job; -1: none */
	int log_fd;    /* where the session logs what the terminal shows; -1: nowhere */
} background = { .caller_fd = -1, .terminal = -1, .log_fd = -1 };

/* What stdout and stderr are already, see background_become(); "": not yet. */
static char log_path[PATH_MAX];

bool is_in_background(void)
{
	return background.is_here && background.terminal < 0;
}

int background_log(int fd)
{
	return background.log_fd >= 0 && isatty(fd) ? background.log_fd : fd;
}

/* --- before the fork --------------------------------------------------------------- */

static int background_check_output(const struct context *context)
{
	const struct settings *settings = context->settings;
	struct why why = WHY_NONE;

	/* main() opens /dev/null with close-on-exec where stdout was closed */
	if (!settings->environment.follow &&
		(fcntl(STDOUT_FILENO, F_GETFD) & FD_CLOEXEC)) {
		diag("cannot submit: stdout is closed, so the job's id cannot be printed");
		return EXIT_MISUSE;
	}
	background.has_logs = joblog_prepare(context, &why) == 0;
	if (!background.has_logs && !settings->output.out) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	return 0;
}

/* --- the new process --------------------------------------------------------------- */

/*
 * Closes the descriptors that were inherited from the caller; gpulease's own are all close-on-exec.
 * An inherited pipe would keep its reader waiting, and the FIFO of a lease would keep that lease.
 */
static int close_inherited(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		uint64_t number;
		int flags;

		if (parse_u64(entry->d_name, INT32_MAX, &number, NULL) < 0 ||
			number <= STDERR_FILENO)
			continue;
		flags = fcntl((int)number, F_GETFD);
		if (flags >= 0 && !(flags & FD_CLOEXEC))
			(void)close((int)number);
	}
	(void)closedir(dir);
	return 0;
}

int background_become(const char *log)
{
	autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	background.is_here = true;
	text_copy(log_path, sizeof(log_path), log ? log : "");
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || setsid() < 0)
		return -errno;
	rlimits_ignore_hangup();
	(void)prctl(PR_SET_NAME, PROCESS_LEASE_SUBMITTED);
	job_step_leave();
	return close_inherited();
}

/* --- the caller -------------------------------------------------------------------- */

/* Waits for the child.  Returns its exit status, 128+n for signal n. */
static int await_child(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_MISUSE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * Prints the id of @job and tells the job's process so through @fd.  If the id cannot be printed,
 * the job must not run: its user does not know of it and would submit it again.  Returns 0 or an
 * exit status.
 */
static int print_id(const struct context *context, uint64_t job, int fd)
{
	int r = 0;

	if (context->settings->environment.follow)
		note("job %llu", (unsigned long long)job);
	else if (dprintf(STDOUT_FILENO, "%llu\n", (unsigned long long)job) < 0)
		r = -errno;
	if (r == 0) {
		(void)send(fd, "!", 1, MSG_NOSIGNAL);
		return 0;
	}
	diag("cannot print the id of job %llu, which therefore gives up: %s",
		(unsigned long long)job, strerror(-r));
	return EXIT_MISUSE;
}

/*
 * In the caller: waits until the job has its ticket and its log, or has ended without.  Returns the
 * caller's exit status.
 */
static int await_job(const struct context *context, pid_t child, int *fd)
{
	uint64_t job;
	ssize_t n;
	int r;

	do
		n = recv(*fd, &job, sizeof(job), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(job)) {
		r = await_child(child);
		if (r > 128)
			diag("the job was killed by signal %d before it had a ticket",
				r - 128);
		return r ? r : EXIT_MISUSE;
	}
	r = print_id(context, job, *fd);
	if (r != 0) {
		/* the end of the socket makes the job give up */
		close_fd(fd);
		(void)await_child(child);
	}
	if (r != 0 || !context->settings->environment.follow)
		return r;
	r = joblog_follow(context, job);
	return r == 0 ? await_child(child) : r;
}

bool background_begin(const struct context *context, int *ret_status)
{
	bool has_session = context->settings->environment.screen;
	int ends[2], r;
	pid_t child;

	*ret_status = 0;
	if (background.is_here) {
		*ret_status = has_session ? session_begin() : 0;
		return *ret_status == 0;
	}
	*ret_status = background_check_output(context);
	if (*ret_status != 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		diag("cannot submit: %s", strerror(errno));
		*ret_status = EXIT_MISUSE;
		return false;
	}
	child = fork();
	if (child == 0) {
		close_fd(&ends[0]);
		background.caller_fd = ends[1];
		r = background_become(NULL);
		if (r == 0 && (!has_session || session_begin() == 0))
			return true;
		if (r < 0)
			diag("cannot go into the background: %s", strerror(-r));
		_exit(EXIT_MISUSE);
	}
	r = errno;
	close_fd(&ends[1]);
	if (child < 0) {
		diag("cannot submit: %s", strerror(r));
		*ret_status = EXIT_MISUSE;
	} else {
		*ret_status = await_job(context, child, &ends[0]);
	}
	close_fd(&ends[0]);
	return false;
}

/* --- once the job has its ticket --------------------------------------------------- */

/*
 * Makes the log LOGS/ID.log, or, if -o has opened *@out, a link of that name to the file.  A link
 * that fails is only reported.
 */
static int background_make_log(const struct context *context, uint64_t job, int *out)
{
	struct why why = WHY_NONE;
	char name[PATH_MAX];

	if (*out < 0) {
		*out = joblog_create(context, job, &why);
		if (*out < 0)
			diag("%s", why.text);
		return *out < 0 ? *out : 0;
	}
	if (background.has_logs &&
		redirect_name(context, job, context->settings->output.out, name) == 0 &&
		joblog_link(context, job, name, &why) < 0)
		note("%s", why.text);
	return 0;
}

static int background_open_files(
	const struct context *context, uint64_t job, struct redirection *files)
{
	int *out = &files->fds[STDOUT_FILENO], *err = &files->fds[STDERR_FILENO];
	int r = redirect_open(context, job, files);

	if (r == 0)
		r = background_make_log(context, job, out);
	if (r < 0)
		return r;
	if (*err < 0)
		*err = *out;
	/* appending: all attempts, stdout and stderr write to these files without overwriting */
	if (fcntl(*out, F_SETFL, O_APPEND) < 0 || fcntl(*err, F_SETFL, O_APPEND) < 0) {
		r = -errno;
		diag("cannot append to the log of job %llu: %s", (unsigned long long)job,
			strerror(-r));
	}
	return r;
}

static void background_close_files(struct redirection *files)
{
	if (files->fds[STDERR_FILENO] == files->fds[STDOUT_FILENO])
		files->fds[STDERR_FILENO] = -1;
	for (int i = 0; i < 3; i++)
		if (files->fds[i] > STDERR_FILENO &&
			files->fds[i] != background.terminal &&
			files->fds[i] != background.log_fd)
			close_fd(&files->fds[i]);
}

/*
 * Writes the name for the session of the job: that of --name, of the log of the job in a batch, or
 * of the command.
 */
static void background_name_session(const struct settings *settings, char out[64])
{
	const char *log = strchr(text_base_name(log_path), '-');
	struct text text = text_on(out, 64);

	if (settings->request.name)
		text_add(&text, settings->request.name);
	else if (log) /* 12-train.py.log */
		text_add_bytes(&text, log + 1, strlen(log + 1) - strlen(".log"));
	else
		text_add(&text, text_base_name(settings->environment.command[0]));
}

/*
 * Shows the job in its session: the terminal takes the place of the log, which gets what the
 * terminal shows, and of each file that is not given.
 */
static int background_enter_session(
	const struct context *context, uint64_t job, struct redirection *files)
{
	const struct settings *settings = context->settings;
	char name[64];

	if (log_path[0])
		background.log_fd =
			fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	else if (!settings->output.out)
		background.log_fd = files->fds[STDOUT_FILENO];
	background_name_session(settings, name);
	background.terminal = session_enter(context, job, name, background.log_fd);
	for (int i = 0; i < 3; i++)
		if (files->fds[i] < 0 || files->fds[i] == background.log_fd)
			files->fds[i] = background.terminal;
	return background.terminal;
}

/* Links LOGS/ID.log to the log that exists already.  The job goes on without the link. */
static void background_link_log(const struct context *context, uint64_t job)
{
	struct why why = WHY_NONE;

	/* the engine links it by the id in Slurm; this id may be that of another job here */
	if (context->settings->environment.is_standin)
		return;
	if (joblog_prepare(context, &why) < 0 ||
		joblog_link(context, job, log_path, &why) < 0)
		verbose("%s", why.text);
}

/*
 * Sends the id to the caller and waits until it is printed.  Returns false if the caller has ended
 * before, or could not print it.
 */
static bool send_id(uint64_t job)
{
	char byte;
	ssize_t n;

	if (send(background.caller_fd, &job, sizeof(job), MSG_NOSIGNAL) < 0)
		return false;
	do
		n = recv(background.caller_fd, &byte, 1, 0);
	while (n < 0 && errno == EINTR);
	close_fd(&background.caller_fd);
	return n == 1;
}

int background_announce(const struct context *context, uint64_t job)
{
	struct redirection files = REDIRECTION_NONE;
	int r = 0;

	if (log_path[0])
		background_link_log(context, job);
	else
		r = background_open_files(context, job, &files);
	if (r >= 0 && context->settings->environment.screen)
		r = background_enter_session(context, job, &files);
	if (r >= 0)
		r = redirect_apply(&files);
	if (r < 0)
		return EXIT_MISUSE;
	background_close_files(&files);
	/* only now, with none of the caller's files open any more: the caller ends after this */
	if (log_path[0] || send_id(job))
		return 0;
	diag("gave up: the gpulease that submitted job %llu has not printed its id",
		(unsigned long long)job);
	return EXIT_MISUSE;
}
