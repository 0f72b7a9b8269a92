#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "background.h"
#include "batch_child.h"
#include "batch_member.h"
#include "diag.h"
#include "exitcodes.h"
#include "fdio.h"
#include "limits.h"
#include "verbs.h"

/* --- the new process --------------------------------------------------------------- */

/* What it keeps of its runner's descriptors, by the numbers that they have there. */
enum { TO_RUNNER = STDERR_FILENO + 1, TO_JOURNAL, TO_LOCK, OTHERS };

/* All but the @count at @kept and stdio, so that there is room even where the runner has none. */
static void close_others(const int *kept, size_t count)
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
 * Puts these in their places, the log in those of stdout and stderr, and closes all others.  As
 * numbers may be in each other's way they go aside first.
 */
static int keep(int runner, int journal, int lock, int log)
{
	const int from[] = { log, log, runner, journal, lock };
	int aside[ARRAY_SIZE(from)];

	close_others(from, ARRAY_SIZE(from));
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

/* Handlers are the runner's; what is ignored was so before it. */
static void reset_handlers(void)
{
	struct sigaction action, usual = { .sa_handler = SIG_DFL };

	for (int number = 1; number < NSIG; number++)
		if (sigaction(number, NULL, &action) == 0 &&
			action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL)
			(void)sigaction(number, &usual, NULL);
}

static void subtract(unsigned *from, unsigned used)
{
	*from -= used < *from ? used : *from;
}

/* How the job goes on after what has become of it in earlier runs. */
static void find_settings(const struct settings *defaults, const struct batch_job *job,
	const struct batch_line *line, char *words[4], struct settings *ret)
{
	batch_settings(defaults, line, 0, words, ret);
	/* memory ran out, and more was declared; unless the user has changed what it says */
	if (job->vram_mib && job->declared_mib == ret->vram_mib)
		batch_settings(defaults, line, job->vram_mib, words, ret);
	subtract(&ret->oom_retries, job->oom_count);
	subtract(&ret->retries, job->fail_count);
}

static uint64_t declared_mib(
	const struct settings *defaults, const struct batch_line *line)
{
	struct settings settings;
	char *words[4];

	batch_settings(defaults, line, 0, words, &settings);
	return settings.vram_mib;
}

/* -D may be about to lead elsewhere. */
static int make_absolute(char path[PATH_MAX])
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

static _Noreturn void live(const struct batch_nursery *nursery,
	const struct batch_job *job, char log[PATH_MAX])
{
	const struct settings *defaults = nursery->defaults;
	struct batch_line line = *job->line;
	struct settings settings;
	char *words[4];
	int r = -ENOMEM, status = EXIT_MISUSE;

	reset_handlers();
	limits_raise();
	diag_setup(defaults->verbose, false);
	batch_member_begin(&(struct batch_member){
		.number = job->number,
		.declared_mib = declared_mib(defaults, &line),
		.runner_fd = TO_RUNNER,
		.journal_fd = TO_JOURNAL,
		.lock_fd = TO_LOCK,
		.tells_memory = defaults->verbose || defaults->json,
	});
	(void)sigprocmask(SIG_SETMASK, &nursery->mask, NULL);
	line.command = batch_inject(defaults, job->line);
	if (line.command)
		r = make_absolute(log);
	if (r == 0)
		r = background_become(log);
	if (r == 0) {
		find_settings(defaults, job, &line, words, &settings);
		status = verb_run(&settings);
	} else {
		diag("cannot go into the background: %s", strerror(-r));
	}
	batch_member_end(status);
	_exit(status);
}

/* --- the runner -------------------------------------------------------------------- */

/* A child that has ended before it knows how to be told to has not run. */
static pid_t fork_quietly(void)
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

int batch_child_start(const struct batch_nursery *nursery, struct batch_job *job)
{
	const struct batch_journal *journal = nursery->journal;
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
	child = fork_quietly();
	if (child == 0) {
		r = keep(ends[1], journal->fd, journal->lock_fd, log);
		if (r < 0)
			_exit(EXIT_GAVE_UP); /* it is put off */
		live(nursery, job, path);
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

static void say(const struct batch_job *job, char byte)
{
	if (job->fd >= 0)
		(void)!send(job->fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void batch_child_recall(struct batch_job *job)
{
	say(job, BATCH_RECALL);
	job->is_recalled = true;
}

void batch_child_mark(struct batch_job *job)
{
	say(job, BATCH_BY_LINE);
}

void batch_child_stop(struct batch_job *job)
{
	say(job, BATCH_STOP);
	if (job->pid)
		(void)kill(job->pid, SIGTERM);
}

/* --- cancelling -------------------------------------------------------------------- */

/* Nobody wants to read that one of them has finished meanwhile. */
static _Noreturn void cancel(
	const struct batch_nursery *nursery, char *operands[], int64_t grace_ms)
{
	struct settings settings = *nursery->defaults;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
		(void)dup2(null, fd);
	fdio_close_from(STDERR_FILENO + 1);
	reset_handlers();
	(void)setsid(); /* no key is to stop it */
	(void)sigprocmask(SIG_SETMASK, &nursery->mask, NULL);
	settings.verb = VERB_CANCEL;
	settings.operands = operands;
	settings.operand_count = 1;
	settings.grace_ms = grace_ms;
	settings.grace_given = true;
	_exit(verb_cancel(&settings));
}

pid_t batch_child_cancel(const struct batch_nursery *nursery, const uint64_t *tickets,
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
	child = fork_quietly();
	if (child == 0)
		cancel(nursery, operands, grace_ms);
	return child < 0 ? -errno : child;
}
