#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "batch_adopt.h"
#include "batch_load.h"
#include "batch_open.h"
#include "batch_report.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"
#include "rlimits.h"
#include "script.h"
#include "session.h"
#include "model_need.h"
#include "rights.h"
#include "text.h"
#include "userfile.h"

/*
 * Blocks the signals of the runner and opens the descriptor that reads them.  Returns 0 or -errno.
 */
static int open_signal_fd(struct batch_runner *runner)
{
	static const int wanted[] = { SIGCHLD, SIGINT, SIGTERM, SIGQUIT };
	sigset_t set, pipe;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &runner->launcher.mask);
	/*
	 * A write to a closed stdout has to return EPIPE.  Blocked and not ignored, because
	 * commands would inherit an ignored SIGPIPE; children restore the mask.
	 */
	(void)sigemptyset(&pipe);
	(void)sigaddset(&pipe, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &pipe, NULL);
	runner->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return runner->signal_fd < 0 ? -errno : 0;
}

/* --- files ------------------------------------------------------------------------- */

static bool is_symlink(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

/* Names a folder for a run that reads standard input: a new one for each run. */
static void open_name_pipe_folder(char out[PATH_MAX])
{
	struct stat st;

	(void)snprintf(out, PATH_MAX, "batch-%d.logs", (int)getpid());
	for (unsigned i = 2; lstat(out, &st) == 0; i++)
		(void)snprintf(out, PATH_MAX, "batch-%d-%u.logs", (int)getpid(), i);
}

void batch_open_folder(const struct settings *settings, char out[PATH_MAX])
{
	const char *operand = settings->verb.operands[0];
	char file[PATH_MAX];
	struct text text = text_on(out, PATH_MAX);

	rights_as_user_begin();
	if (settings->batch.log_dir)
		text_add(&text, settings->batch.log_dir);
	else if (strcmp(operand, "-") == 0)
		open_name_pipe_folder(out);
	else
		text_addf(&text, "%s.logs",
			is_symlink(operand) && realpath(operand, file) ? file : operand);
	rights_as_user_end();
}

/* Whether there is a journal from an earlier run. */
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

static bool is_any_name_known(const void *arg, const char *name, size_t size)
{
	(void)arg, (void)name, (void)size;
	return true;
}

static enum batch_format open_format(const struct batch_runner *runner)
{
	const struct settings *settings = runner->context.settings;

	return batch_format_of(settings->batch.format, settings->verb.operands[0],
		runner->file.text, runner->file.size);
}

/* Refuses --inject for lines: they are text for a shell, where only {gpus} marks a place. */
static int open_check_inject(const struct batch_runner *runner, struct why *why)
{
	if (!runner->context.settings->environment.inject ||
		open_format(runner) == BATCH_CSV)
		return 0;
	why_set(why, "--inject cannot tell where in a line its option belongs; write "
		     "{gpus} there");
	return -EINVAL;
}

/*
 * Checks the jobs file before the folder is created, so that a wrong file leaves no folder.
 * If there is a journal, names in `after` that no line has are accepted here, because they may be
 * names of earlier jobs; batch_edit_apply() checks them once the journal was read.
 */
static int open_check_lines(const struct batch_runner *runner, struct why *why)
{
	static const struct batch_known all = { is_any_name_known, NULL };
	const struct settings *settings = runner->context.settings;
	struct batch_list list;
	int r = batch_list_parse(open_format(runner), settings->verb.operands[0],
		runner->file.text, runner->file.size, runner->python,
		!settings->batch.fresh && has_journal(runner) ? &all : NULL, &list, why);

	if (r == 0)
		batch_list_release(&list);
	return r;
}

/*
 * Opens and reads the journal, and adopts the jobs that still run.  Returns 0 or a negative errno.
 */
static int open_journal(struct batch_runner *runner, struct why *why)
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
		note("journal in '%s': lines that cannot be read and are skipped: %zu",
			runner->folder, skipped);
	batch_adopt_all(runner);
	return 0;
}

/*
 * For --fresh: forgets all earlier runs and begins a new journal.  Refuses while jobs of an earlier
 * run still run, because their lines would run twice.
 */
static int open_fresh(struct batch_runner *runner, struct why *why)
{
	char ids[256];
	struct text text = TEXT_ON(ids);
	int r;

	if (runner->active_count) {
		batch_report_add_jobs(
			&runner->jobs, runner->active, runner->active_count, &text);
		why_set(why,
			"jobs of an earlier run have not ended: %s%s; wait for them, or "
			"cancel them first",
			ids, text.cut ? "…" : "");
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

/* Checks that jobs can change to the folder of -D; the runner itself does not change to it. */
static int open_check_chdir(const struct run_environment *environment, struct why *why)
{
	autofd int fd = -1;

	if (!environment->chdir)
		return 0;
	fd = userfile_open(environment->chdir, O_PATH | O_DIRECTORY, 0);
	if (fd >= 0)
		return 0;
	why_set(why, "cannot change to '%s': %s", environment->chdir, strerror(-fd));
	return fd;
}

/* Finds where the commands will run. */
static void open_find_directory(struct batch_runner *runner)
{
	const char *chdir = runner->context.settings->environment.chdir;

	rights_as_user_begin();
	if (!realpath(chdir ? chdir : ".", runner->directory))
		runner->directory[0] = '\0';
	rights_as_user_end();
}

/*
 * Opens everything.  The steps that create nothing come first, so that their errors leave no trace:
 * options, jobs file, then folder and journal.  Returns 0 or a negative errno.
 */
static int open_everything(struct batch_runner *runner, struct why *why)
{
	const struct settings *settings = runner->context.settings;
	/* errors that would make every job fail */
	int r = open_check_chdir(&settings->environment, why);

	if (r == 0 && settings->environment.screen)
		r = session_check(why);
	if (r == 0)
		r = model_need_check(
			settings->request.models, settings->environment.chdir, why);
	if (r == 0)
		r = batch_file_open(settings->verb.operands[0], &runner->file, why);
	batch_open_folder(settings, runner->folder);
	open_find_directory(runner);
	if (r == 0 && !runner->file.is_pipe)
		r = batch_file_read(&runner->file, why);
	if (r == 0)
		r = open_check_inject(runner, why);
	if (r == 0 && !runner->file.is_pipe)
		r = open_check_lines(runner, why);
	if (r == 0)
		r = open_journal(runner, why);
	if (r == 0 && settings->batch.fresh)
		r = open_fresh(runner, why);
	return r;
}

int batch_open(struct batch_runner *runner, struct settings *settings)
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
		.plan = { .once = settings->batch.once },
	};
	rlimits_raise();
	r = context_open(settings, &runner->context);
	if (r != 0)
		return r;
	runner->liveness = LIVENESS_SET_ON(&runner->context.dir);
	runner->python = script_python();
	runner->launcher.defaults = settings;
	runner->launcher.journal = &runner->journal;
	r = open_everything(runner, &why);
	if (r == 0)
		r = open_signal_fd(runner);
	if (r < 0) {
		diag("%s", why.text[0] ? why.text : strerror(-r));
		return EXIT_MISUSE;
	}
	runner->board.file = text_base_name(settings->verb.operands[0]);
	runner->board.jobs = &runner->jobs;
	runner->board.begun_ms = clock_real_ms();
	runner->board.is_watching = settings->batch.watch;
	batch_show_begin(&runner->show, &settings->output,
		runner->context.config.tolerance_percent, &runner->journal);
	return 0;
}
