/* Opening all that a batch needs: its file, its folder, its journal. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "batch_runner.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "limits.h"
#include "need.h"
#include "rights.h"
#include "userfile.h"

static int open_signals(struct batch_runner *runner)
{
	static const int wanted[] = { SIGCHLD, SIGINT, SIGTERM, SIGQUIT };
	sigset_t set, pipe;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &runner->nursery.mask);
	/* whoever reads our lines may go; not ignored, for so it would be by the commands, too */
	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &pipe, NULL);
	runner->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return runner->signal_fd < 0 ? -errno : 0;
}

/* --- beginning --------------------------------------------------------------------- */

static bool is_link(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Of what comes through a pipe, one for each run. */
static void name_pipe_folder(char out[PATH_MAX])
{
	struct stat st;

	(void)snprintf(out, PATH_MAX, "batch-%d.logs", (int)getpid());
	for (unsigned i = 2; lstat(out, &st) == 0; i++)
		(void)snprintf(out, PATH_MAX, "batch-%d-%u.logs", (int)getpid(), i);
}

/* FILE.logs beside the file, also where a link leads to it: so two runners of it meet there. */
static void name_folder(struct batch_runner *runner)
{
	const struct settings *settings = runner->context.settings;
	char file[PATH_MAX];
	struct text text = TEXT_ON(runner->folder);

	rights_as_user_begin();
	if (settings->log_dir)
		text_add(&text, settings->log_dir);
	else if (runner->file.is_pipe)
		name_pipe_folder(runner->folder);
	else
		text_addf(&text, "%s.logs",
			is_link(settings->operands[0]) &&
					realpath(settings->operands[0], file)
				? file
				: settings->operands[0]);
	rights_as_user_end();
}

/* Whether there is a journal, from a run before. */
static bool has_journal(const struct batch_runner *runner)
{
	char path[PATH_MAX + 16];
	bool is_there;

	(void)snprintf(path, sizeof(path), "%s/journal.jsonl", runner->folder);
	rights_as_user_begin();
	is_there = access(path, F_OK) == 0;
	rights_as_user_end();
	return is_there;
}

static bool may_be_known(const void *arg, const char *name, size_t size)
{
	(void)arg, (void)name, (void)size;
	return true;
}

/*
 * Nothing is made where the file is none.  A line may come after one that only the journal
 * knows: that is looked at once it has been read.
 */
static int check_file(const struct batch_runner *runner, struct why *why)
{
	static const struct batch_known all = { may_be_known, NULL };
	const struct settings *settings = runner->context.settings;
	struct batch_list list;
	int r = batch_list_parse(settings->batch_format, settings->operands[0],
		runner->file.text, runner->file.size, runner->python,
		!settings->fresh && has_journal(runner) ? &all : NULL, &list, why);

	if (r == 0)
		batch_list_release(&list);
	return r;
}

static int begin_journal(struct batch_runner *runner, struct why *why)
{
	uint64_t *list = NULL;
	size_t count = 0, skipped = 0;
	int r;

	r = batch_journal_open(runner->folder, &runner->journal, why);
	if (r == 0)
		r = batch_journal_load(
			&runner->journal, &runner->jobs, &list, &count, &skipped, why);
	if (r < 0)
		return r;
	runner->board.order = list;
	runner->board.order_count = count;
	if (skipped)
		note("lines of the journal in '%s' that cannot be read, and are skipped: %zu",
			runner->folder, skipped);
	batch_adopt(runner);
	return 0;
}

/* --fresh: nothing of before counts.  What still runs of it would run twice. */
static int begin_anew(struct batch_runner *runner, struct why *why)
{
	int r;

	if (runner->active_count) {
		why_set(why,
			"%zu jobs of an earlier run still run (ticket %llu); wait for them, "
			"or cancel them first",
			runner->active_count,
			(unsigned long long)batch_jobs_find(
				&runner->jobs, runner->active[0])
				->ticket);
		return -EBUSY;
	}
	r = batch_journal_renew(&runner->journal, why);
	if (r < 0)
		return r;
	batch_jobs_release(&runner->jobs);
	free((void *)runner->board.order);
	runner->board.order = NULL;
	runner->board.order_count = 0;
	return 0;
}

/* Whether the lines can change to that of -D; the runner itself stays where it is. */
static int check_folder(const struct settings *settings, struct why *why)
{
	autofd int fd = -1;

	if (!settings->chdir)
		return 0;
	fd = userfile_open(settings->chdir, O_PATH | O_DIRECTORY, 0);
	if (fd >= 0)
		return 0;
	why_set(why, "cannot change to '%s': %s", settings->chdir, strerror(-fd));
	return fd;
}

static int open_all(struct batch_runner *runner, struct why *why)
{
	const struct settings *settings = runner->context.settings;
	/* what each line would fail for */
	int r = check_folder(settings, why);

	if (r == 0)
		r = need_check(settings, why);
	if (r == 0)
		r = batch_file_open(settings->operands[0], &runner->file, why);
	name_folder(runner);
	if (r == 0 && !runner->file.is_pipe)
		r = batch_file_read(&runner->file, why);
	if (r == 0 && !runner->file.is_pipe)
		r = check_file(runner, why);
	if (r == 0)
		r = begin_journal(runner, why);
	if (r == 0 && settings->fresh)
		r = begin_anew(runner, why);
	return r;
}

static const char *find_python(void)
{
	char program[PATH_MAX];

	return find_program("python", program) == 0 ? "python" : "python3";
}

/* What stands behind the last slash: a line of the board is not long. */
static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

int batch_runner_open(struct batch_runner *runner, struct settings *settings)
{
	struct why why = WHY_NONE;
	int r;

	*runner = (struct batch_runner){
		.file = BATCH_FILE_NONE,
		.journal = BATCH_JOURNAL_NONE,
		.signal_fd = -1,
		.watch = WATCH_NONE,
		.kill_ms = INT64_MAX,
		.leave_ms = INT64_MAX,
		.plan = { .once = settings->once },
	};
	limits_raise();
	r = context_open(settings, &runner->context);
	if (r != 0)
		return r;
	runner->lives = LIVES_ON(&runner->context.dir);
	runner->python = find_python();
	runner->nursery.defaults = settings;
	runner->nursery.journal = &runner->journal;
	r = open_all(runner, &why);
	if (r == 0)
		r = open_signals(runner);
	if (r < 0) {
		diag("%s", why.text[0] ? why.text : strerror(-r));
		return EXIT_MISUSE;
	}
	runner->board.file = base_of(settings->operands[0]);
	runner->board.jobs = &runner->jobs;
	runner->board.begun_ms = clock_real_ms();
	runner->board.is_watching = settings->watch;
	batch_show_begin(&runner->show, settings->json, settings->quiet,
		runner->context.config.tolerance_percent, &runner->journal);
	return 0;
}
