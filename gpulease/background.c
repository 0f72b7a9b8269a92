#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "background.h"
#include "diag.h"
#include "exitcodes.h"
#include "follow.h"
#include "joblog.h"
#include "kin.h"
#include "limits.h"
#include "parse.h"
#include "redirect.h"
#include "rights.h"
#include "step.h"

static struct {
	bool is_here;
	bool has_logs; /* a place for them; else with -o alone */
	int caller_fd; /* to who waits for the id */
} background = { .caller_fd = -1 };

/* Of who became one by itself: what stdout and stderr are. */
static char log_path[PATH_MAX];

bool in_background(void)
{
	return background.is_here;
}

/* --- before ------------------------------------------------------------------------ */

static int check_output(const struct context *context)
{
	const struct settings *settings = context->settings;
	struct why why = WHY_NONE;

	/* closed on exec is what main() has put where nothing was open */
	if (!settings->follow && (fcntl(STDOUT_FILENO, F_GETFD) & FD_CLOEXEC)) {
		diag("cannot submit: stdout is closed, where the job's id is printed");
		return EXIT_MISUSE;
	}
	background.has_logs = joblog_prepare(context, &why) == 0;
	if (!background.has_logs && !settings->output) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	return 0;
}

/* --- the new process --------------------------------------------------------------- */

/*
 * What is not close-on-exec is not ours.  A pipe of the caller's would keep whoever reads it
 * waiting, the FIFO of a lease around that lease.
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
	limits_ignore_hangup();
	(void)prctl(PR_SET_NAME, KIN_SUBMITTED);
	step_leave();
	return close_inherited();
}

/* --- the caller -------------------------------------------------------------------- */

static int await(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_MISUSE;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * Prints the id of @job, which waits for that behind @fd: who cannot know of a job submits it
 * again.  0 or an exit status.
 */
static int tell_id(const struct context *context, uint64_t job, int fd)
{
	int r = 0;

	if (context->settings->follow)
		note("job %llu", (unsigned long long)job);
	else if (dprintf(STDOUT_FILENO, "%llu\n", (unsigned long long)job) < 0)
		r = -errno;
	if (r == 0) {
		(void)send(fd, "!", 1, MSG_NOSIGNAL);
		return 0;
	}
	diag("cannot print the id of job %llu, which is given up: %s",
		(unsigned long long)job, strerror(-r));
	return EXIT_MISUSE;
}

/* Until the job has its ticket and its log, or has ended without. */
static int see_off(const struct context *context, pid_t child, int *fd)
{
	uint64_t job;
	ssize_t n;
	int r;

	do
		n = recv(*fd, &job, sizeof(job), 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(job)) {
		r = await(child);
		if (r > 128)
			diag("the job was killed before it had a ticket (signal %d)",
				r - 128);
		return r ? r : EXIT_MISUSE;
	}
	r = tell_id(context, job, *fd);
	if (r != 0) {
		close_fd(fd);
		(void)await(child);
	}
	if (r != 0 || !context->settings->follow)
		return r;
	r = follow(context, job);
	return r == 0 ? await(child) : r;
}

bool background_begin(const struct context *context, int *ret_status)
{
	int ends[2], r;
	pid_t child;

	*ret_status = 0;
	if (in_background())
		return true;
	*ret_status = check_output(context);
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
		if (r == 0)
			return true;
		diag("cannot go into the background: %s", strerror(-r));
		_exit(EXIT_MISUSE);
	}
	r = errno;
	close_fd(&ends[1]);
	if (child < 0) {
		diag("cannot submit: %s", strerror(r));
		*ret_status = EXIT_MISUSE;
	} else {
		*ret_status = see_off(context, child, &ends[0]);
	}
	close_fd(&ends[0]);
	return false;
}

/* --- with a ticket ----------------------------------------------------------------- */

/* The log under its own name, or that name for the file that it is to be. */
static int make_log(const struct context *context, uint64_t job, int *out)
{
	struct why why = WHY_NONE;
	char name[PATH_MAX];

	if (*out < 0) {
		*out = joblog_create(context, job, &why);
		if (*out < 0)
			diag("%s", why.text);
		return *out < 0 ? *out : 0;
	}
	/* attempts go on in the same file, and so do stdout and stderr */
	if (background.has_logs &&
		redirect_name(context, job, context->settings->output, name) == 0 &&
		joblog_link(context, job, name, &why) < 0)
		note("%s", why.text);
	return 0;
}

static int open_files(
	const struct context *context, uint64_t job, struct redirection *files)
{
	int *out = &files->fds[STDOUT_FILENO], *err = &files->fds[STDERR_FILENO];
	int r = redirect_open(context, job, files);

	if (r == 0)
		r = make_log(context, job, out);
	if (r < 0)
		return r;
	if (*err < 0)
		*err = *out;
	/* the second of two that are one file would write over what the first has written */
	if (fcntl(*out, F_SETFL, O_APPEND) < 0 || fcntl(*err, F_SETFL, O_APPEND) < 0) {
		diag("cannot append to the log: %s", strerror(errno));
		return -errno;
	}
	return 0;
}

static void close_files(struct redirection *files)
{
	if (files->fds[STDERR_FILENO] == files->fds[STDOUT_FILENO])
		files->fds[STDERR_FILENO] = -1;
	for (int i = 0; i < 3; i++)
		if (files->fds[i] > STDERR_FILENO)
			close_fd(&files->fds[i]);
}

/* Its log is elsewhere already; that --log does not find it by the id is no reason to give up. */
static void name_log(const struct context *context, uint64_t job)
{
	struct why why = WHY_NONE;

	if (joblog_prepare(context, &why) < 0 ||
		joblog_link(context, job, log_path, &why) < 0)
		verbose("%s", why.text);
}

/* The id, to who waits for it, until that one has printed it; whether it has. */
static bool give_id(uint64_t job)
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
	struct redirection files;
	int r;

	if (log_path[0]) {
		name_log(context, job);
		return 0;
	}
	r = open_files(context, job, &files);
	if (r == 0)
		r = redirect_apply(&files);
	if (r < 0)
		return EXIT_MISUSE;
	close_files(&files);
	/* all that was the caller's is closed now: it may go */
	if (give_id(job))
		return 0;
	diag("gave up: whoever has submitted job %llu has not printed its id",
		(unsigned long long)job);
	return EXIT_MISUSE;
}
