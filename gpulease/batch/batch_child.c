#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "background.h"
#include "batch_child.h"
#include "batch_member.h"
#include "batch_settings.h"
#include "cancel.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "rlimits.h"
#include "run_job.h"

/* --- the new process --------------------------------------------------------------- */

/* The numbers in the child of the descriptors that it inherits. */
enum { TO_RUNNER = STDERR_FILENO + 1, TO_JOURNAL, TO_LOCK, OTHERS };

/* Closes all descriptors but stdio and @kept, so that the dup calls cannot fail with EMFILE. */
static void child_close_others(const int *kept, size_t count)
{
	int last = STDERR_FILENO;

	for (size_t i = 0; i < count; i++)
		last = kept[i] > last ? kept[i] : last;
	fdio_close_from(last + 1);
	for (int fd = STDERR_FILENO + 1; fd < last; fd++) {
		bool is_kept = false;

		for (size_t i = 0; i < count; i++)
			is_kept = is_kept || kept[i] == fd;
		if (!is_kept)
			(void)close(fd);
	}
}

/*
 * Moves the descriptors to their numbers, the log to stdout and stderr, and closes all others.
 * They are duplicated to high numbers first, because one may have the number that another gets.
 */
static int child_keep_fds(int runner, int journal, int lock, int log)
{
	const int from[] = { log, log, runner, journal, lock };
	int aside[ARRAY_SIZE(from)];

	child_close_others(from, ARRAY_SIZE(from));
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		aside[i] = fcntl(from[i], F_DUPFD_CLOEXEC, OTHERS);
		if (aside[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		int to = STDOUT_FILENO + (int)i;

		if (dup3(aside[i], to, to <= STDERR_FILENO ? 0 : O_CLOEXEC) < 0)
			return -errno;
	}
	fdio_close_from(OTHERS);
	return 0;
}

/*
 * Removes the handlers of the runner; signals that gpulease was started with ignored stay ignored.
 */
static void child_reset_handlers(void)
{
	struct sigaction action, usual = { .sa_handler = SIG_DFL };

	for (int number = 1; number < NSIG; number++)
		if (sigaction(number, NULL, &action) == 0 &&
			action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL)
			(void)sigaction(number, &usual, NULL);
}

static void subtract_used(unsigned *from, unsigned used)
{
	*from -= used < *from ? used : *from;
}

/*
 * Sets *@ret to the settings of the job, less what its attempts in earlier runs have used up of its
 * retries.
 */
static void child_settings(const struct settings *defaults, const struct batch_job *job,
	const struct batch_line *line, char *words[4], struct settings *ret)
{
	batch_settings(defaults, line, 0, words, ret);
	/* out of memory has raised what it declares; that stays unless the user edited vram */
	if (job->vram_mib && job->declared_mib == ret->request.vram_mib)
		batch_settings(defaults, line, job->vram_mib, words, ret);
	subtract_used(&ret->care.oom_retries, job->oom_count);
	subtract_used(&ret->care.retries, job->fail_count);
}

static uint64_t child_declared_mib(
	const struct settings *defaults, const struct batch_line *line)
{
	struct settings settings;
	char *words[4];

	batch_settings(defaults, line, 0, words, &settings);
	return settings.request.vram_mib;
}

/*
 * Makes @path absolute, because the job may change to the folder of -D.  Returns 0 or a negative
 * errno.
 */
static int child_make_absolute(char path[PATH_MAX])
{
	char here[PATH_MAX], full[PATH_MAX];
	struct text text = TEXT_ON(full);

	if (path[0] == '/')
		return 0;
	if (!getcwd(here, sizeof(here)))
		return -errno;
	text_addf(&text, "%s/%s", here, path);
	text_copy(path, PATH_MAX, full);
	return text.cut ? -ENAMETOOLONG : 0;
}

/* The new process: runs the job and exits with its status. */
static _Noreturn void child_run(const struct batch_launcher *launcher,
	const struct batch_job *job, char log[PATH_MAX])
{
	const struct settings *defaults = launcher->defaults;
	struct batch_line line = *job->line;
	struct batch_member member = {
		.number = job->number,
		.declared_mib = child_declared_mib(defaults, &line),
		.environment = line.environment,
		.runner_fd = TO_RUNNER,
		.journal_fd = TO_JOURNAL,
		.lock_fd = TO_LOCK,
	};
	struct settings settings;
	char *words[4];
	int r = -ENOMEM, status = EXIT_MISUSE;

	child_reset_handlers();
	rlimits_raise();
	diag_setup(defaults->output.verbose, false);
	batch_member_begin(&member);
	(void)sigprocmask(SIG_SETMASK, &launcher->mask, NULL);
	line.command = batch_inject(defaults, job->line);
	if (line.command)
		r = child_make_absolute(log);
	if (r == 0)
		r = background_become(log);
	if (r == 0) {
		child_settings(defaults, job, &line, words, &settings);
		status = launcher->prepare ? launcher->prepare(launcher, &line, log,
						     &member, &settings)
					   : 0;
		if (status == 0)
			status = run_job(&settings, &member.observer);
	} else {
		diag("cannot go into the background: %s", strerror(-r));
	}
	batch_member_end(&member, status);
	_exit(status);
}

/* --- the runner -------------------------------------------------------------------- */

/*
 * Forks with all signals blocked in the child, which unblocks them when its handler of TERM is in
 * place.  A TERM before that would otherwise end it without a report.
 */
static pid_t child_fork(void)
{
	sigset_t all, before;
	pid_t child;

	(void)fflush(NULL);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child != 0) {
		int saved = errno;

		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		errno = saved;
	}
	return child;
}

int batch_child_start(const struct batch_launcher *launcher, struct batch_job *job)
{
	const struct batch_journal *journal = launcher->journal;
	char path[PATH_MAX] = "";
	autofd int log = batch_log_open(
		journal, job->number, job->name, job->command, !job->was_started, path);
	int ends[2], r;
	pid_t child;

	if (log < 0)
		return log;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) <
		0)
		return -errno;
	child = child_fork();
	if (child == 0) {
		r = child_keep_fds(ends[1], journal->fd, journal->lock_fd, log);
		if (r < 0)
			_exit(EXIT_GAVE_UP); /* the runner then puts the job off */
		child_run(launcher, job, path);
	}
	r = child < 0 ? -errno : 0;
	close_fd(&ends[1]);
	if (child < 0) {
		close_fd(&ends[0]);
		return r;
	}
	job->pid = child;
	job->fd = ends[0];
	job->state = BATCH_IN_QUEUE;
	return 0;
}

/* Sends one byte to the child; if the socket is full or closed, the byte is dropped. */
static void child_send(const struct batch_job *job, char byte)
{
	if (job->fd >= 0)
		(void)!send(job->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void batch_child_recall(struct batch_job *job)
{
	child_send(job, BATCH_RECALL);
	job->is_recalled = true;
}

void batch_child_mark_cancelled(struct batch_job *job)
{
	child_send(job, BATCH_BY_LINE);
}

void batch_child_stop(struct batch_job *job)
{
	child_send(job, BATCH_STOP);
	if (job->pid)
		(void)kill(job->pid, SIGTERM);
}

/* --- cancelling -------------------------------------------------------------------- */

/*
 * Returns the new process that cancels.  Its output is discarded: "already finished" is not an
 * error here.
 */
static _Noreturn void child_cancel_jobs(
	const struct batch_launcher *launcher, char *operands[], int64_t grace_ms)
{
	struct settings settings = *launcher->defaults;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	fdio_close_from(STDERR_FILENO + 1);
	child_reset_handlers();
	(void)setsid(); /* signals of the terminal must not stop it */
	(void)sigprocmask(SIG_SETMASK, &launcher->mask, NULL);
	settings.verb.kind = VERB_CANCEL;
	settings.verb.operands = operands;
	settings.verb.operand_count = 1;
	settings.care.grace_ms = grace_ms;
	settings.care.grace_given = true;
	_exit(cancel_jobs(&settings));
}

pid_t batch_child_cancel(const struct batch_launcher *launcher, const uint64_t *tickets,
	size_t count, int64_t grace_ms)
{
	size_t room = count * sizeof(",18446744073709551615") + 1;
	autofree char *ids = malloc(room);
	char *operands[] = { ids, NULL };
	struct text text;
	pid_t child;

	if (!ids)
		return -ENOMEM;
	text = text_on(ids, room);
	for (size_t i = 0; i < count; i++)
		text_addf(&text, "%s%llu", i ? "," : "", (unsigned long long)tickets[i]);
	child = child_fork();
	if (child == 0)
		child_cancel_jobs(launcher, operands, grace_ms);
	return child < 0 ? -errno : child;
}
