#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/signalfd.h>

#include "batch_active.h"
#include "batch_adopt.h"
#include "batch_edit.h"
#include "batch_record.h"
#include "batch_report.h"
#include "batch_runner.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"

enum {
	QUEUE_MAX = 16,       /* waiting tickets: more would hinder other users */
	ACTIVE_MAX = 256,     /* jobs that wait or run; one without GPUs never waits */
	LEAVE_MS = 10 * 1000, /* how long to wait for jobs to end after KILL */
	RETRY_LINES_MS = 10 * 1000, /* until a retry, if the lines could not be applied */
	PIPE_MS = 100,              /* between two reads of standard input */
	FAILURES_MAX = 100,         /* the most failed jobs that are listed: the newest */
	EXIT_INTERRUPTED = 130,
};

/* --- notes ------------------------------------------------------------------------- */

/* Shows a message as an event that belongs to no job. */
static void runner_note(struct batch_runner *runner, const char *format, ...)
	PRINTF_LIKE(2, 3);

static void runner_note(struct batch_runner *runner, const char *format, ...)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_NOTE, 0);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(event.text, sizeof(event.text), format, args);
	va_end(args);
	(void)!batch_record_event(runner, &event);
}

/* --- stopping ---------------------------------------------------------------------- */

/* Kills all jobs that wait or run, and limits how long the runner still waits for their ends. */
static void runner_kill_all(struct batch_runner *runner)
{
	autofree uint64_t *tickets = calloc(runner->active_count + 1, sizeof(*tickets));
	size_t count = 0;

	runner->kill_ms = INT64_MAX;
	runner->leave_ms = clock_boot_ms() + LEAVE_MS;
	/*
	 * A job with a ticket is cancelled without grace, which also ends what it has started.  The
	 * process of a job that waits in Slurm's queue was told to cancel it, and goes on with
	 * that.
	 */
	for (size_t i = 0; tickets && i < runner->active_count; i++) {
		const struct batch_job *job =
			batch_jobs_find(&runner->jobs, runner->active[i]);

		if (job->ticket)
			tickets[count++] = job->ticket;
		else if (job->pid && !runner->launcher.prepare)
			(void)kill(job->pid, SIGKILL);
	}
	if (count)
		(void)!batch_child_cancel(&runner->launcher, tickets, count, 0);
}

/*
 * Stops the batch.  The first call sends TERM to all jobs, and KILL follows after the grace period;
 * the second call kills at once.  Later calls change nothing.
 */
static void runner_stop(struct batch_runner *runner)
{
	runner->board.is_stopping = true;
	batch_show_changed(&runner->show);
	if (runner->stop_count++) {
		if (runner->kill_ms != INT64_MAX || runner->stop_count == 2)
			runner_kill_all(runner);
		return;
	}
	runner->kill_ms = clock_boot_ms() + runner->context.settings->care.grace_ms;
	for (size_t i = 0; i < runner->active_count; i++)
		batch_adopt_stop(
			runner, batch_jobs_find(&runner->jobs, runner->active[i]));
}

static void runner_read_signals(struct batch_runner *runner)
{
	struct signalfd_siginfo info;

	while (read(runner->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		runner->was_signalled = true;
		if (!runner->stop_count && runner->active_count)
			runner_note(runner,
				"interrupted: ending %zu job%s; once more kills them",
				runner->active_count,
				runner->active_count == 1 ? "" : "s");
		runner_stop(runner);
	}
}

/* --- working ----------------------------------------------------------------------- */

/*
 * Whether standard input is no longer read, because it had an error: unlike a line of a file, a
 * line of a pipe cannot be corrected.
 */
static bool is_input_abandoned(const struct batch_runner *runner)
{
	return runner->file.is_pipe && runner->is_bad;
}

/* Prints an error of the jobs file. */
static void runner_report_bad_file(struct batch_runner *runner, const struct why *why)
{
	batch_show_clear(&runner->show);
	diag("%s; %s", why->text,
		is_input_abandoned(runner) ? "the rest is not read"
					   : "the lines read before stay in force");
}

/*
 * Applies the lines that were read last.  An error in a line stays until the file changes.  Any
 * other failure (no memory, a full disk) may pass, so the lines are applied again later.
 */
static void runner_apply_lines(struct batch_runner *runner)
{
	struct why why = WHY_NONE;
	int r = batch_edit_apply(runner, &why);

	runner->is_bad = r == -EINVAL;
	runner->retry_lines_ms =
		r < 0 && r != -EINVAL ? clock_boot_ms() + RETRY_LINES_MS : 0;
	/* do not repeat an error that the file had before its last change */
	if (r < 0 && strcmp(why.text, runner->complaint.text) != 0)
		runner_report_bad_file(runner, &why);
	runner->complaint = why;
}

/*
 * Reads the file if it has changed, and applies its lines.  A file with an error changes nothing.
 */
static void runner_check_file(struct batch_runner *runner)
{
	struct why why = WHY_NONE;
	int64_t now_ms = clock_boot_ms();
	int r;

	if (now_ms < runner->pipe_ms)
		return;
	r = batch_file_step(&runner->file, now_ms, &why);
	if (r < 0) {
		runner->is_bad = runner->is_bad || runner->file.is_pipe;
		runner_report_bad_file(runner, &why);
	} else if (r == BATCH_FILE_CHANGED ||
		   (runner->retry_lines_ms && now_ms >= runner->retry_lines_ms)) {
		runner_apply_lines(runner);
		/* applying parses all lines, so do not apply after each single line from a pipe */
		runner->pipe_ms = runner->file.is_pipe ? now_ms + PIPE_MS : 0;
	}
}

/* Whether another job may enter the queue now. */
static bool can_start_job(const struct batch_runner *runner)
{
	unsigned at_once = runner->context.settings->batch.jobs_at_once;
	size_t waiting = 0;

	if (runner->put_off_ms)
		return false;
	for (size_t i = 0; i < runner->active_count; i++) {
		const struct batch_job *job =
			batch_jobs_find(&runner->jobs, runner->active[i]);

		/*
		 * Tickets have to come in the order of the file.  So no job starts while
		 * another one is about to get its ticket, or is recalled and may have to
		 * queue again before it.
		 */
		if (job->state == BATCH_IN_QUEUE &&
			(!batch_job_id(job) || job->is_recalled))
			return false;
		waiting += job->state == BATCH_IN_QUEUE || job->is_between;
	}
	/* the waiting jobs of Slurm wait there, and ->jobs_at_once bounds them */
	return (waiting < QUEUE_MAX || runner->launcher.prepare) &&
	       runner->active_count < (at_once ? at_once : ACTIVE_MAX);
}

/* Starts, or ends without a start, all jobs for which that is possible now. */
static void runner_start_jobs(struct batch_runner *runner)
{
	while (!runner->stop_count) {
		struct batch_job *job = NULL;
		uint64_t other = 0;
		char text[64];

		switch (batch_plan_next(
			&runner->plan, can_start_job(runner), &job, &other)) {
		case BATCH_STEP_WAIT:
			return;
		case BATCH_STEP_START:
			batch_active_start(runner, job);
			break;
		case BATCH_STEP_CANCEL:
			job->is_cancelling = true;
			batch_record_end(runner, job, BATCH_BY_CANCEL, 128 + SIGTERM,
				"by its line in the file");
			break;
		case BATCH_STEP_DROP:
			job->is_dropped = true;
			batch_record_end(runner, job, BATCH_NOT_RUN, 0,
				"an equal line has finished");
			break;
		case BATCH_STEP_GIVE_UP:
			(void)snprintf(text, sizeof(text), "entry %llu has failed",
				(unsigned long long)other);
			batch_record_end(runner, job, BATCH_NOT_RUN, EXIT_GAVE_UP, text);
			break;
		}
	}
}

/* Whether new lines may still come, or are in the file and were not read yet. */
static bool can_lines_come(struct batch_runner *runner)
{
	if (is_input_abandoned(runner))
		return false;
	return runner->context.settings->batch.watch ||
	       batch_file_has_more(&runner->file, clock_boot_ms());
}

/*
 * Whether nothing is left to do.  If every job left waits for a job that will never end, the first
 * of them is recorded as not run, which may let later jobs start.
 */
static bool is_runner_done(struct batch_runner *runner)
{
	struct batch_job *job;

	if (runner->stop_count)
		return !runner->active_count || clock_boot_ms() >= runner->leave_ms;
	while (!runner->active_count && !runner->put_off_ms && !runner->retry_lines_ms &&
		!can_lines_come(runner)) {
		job = batch_plan_find_stuck(&runner->plan);
		if (!job)
			return true;
		batch_record_end(runner, job, BATCH_NOT_RUN, EXIT_GAVE_UP,
			"an entry that it comes after is not in the file, or waits for it");
		runner_start_jobs(runner);
	}
	return false;
}

static bool has_failed_job(const struct batch_runner *runner)
{
	for (size_t i = 0; i < runner->jobs.count; i++)
		if (!runner->jobs.all[i].is_from_earlier &&
			batch_is_failed(&runner->jobs.all[i]))
			return true;
	return false;
}

/* Adds the descriptors and the deadlines of the jobs file to ->watch. */
static int runner_watch_file(struct batch_runner *runner)
{
	struct watch *watch = &runner->watch;
	struct pollfd fds[BATCH_FILE_FDS];
	unsigned count;
	int r = 0;

	if (runner->stop_count || is_input_abandoned(runner))
		return 0;
	if (clock_boot_ms() < runner->pipe_ms) {
		watch_until(watch, runner->pipe_ms);
		return 0;
	}
	count = batch_file_poll(&runner->file, fds);
	for (unsigned i = 0; i < count && r == 0; i++)
		r = watch_add(watch, fds[i].fd, fds[i].events);
	watch_until(watch, batch_file_wake_ms(&runner->file));
	if (runner->retry_lines_ms)
		watch_until(watch, runner->retry_lines_ms);
	return r;
}

/* Waits for any event, until @wake_ms at most.  Returns 0 or a negative errno. */
static int runner_wait(struct batch_runner *runner, int64_t wake_ms)
{
	struct watch *watch = &runner->watch;
	int r = watch_add(watch, runner->signal_fd, POLLIN);

	if (r == 0)
		r = runner_watch_file(runner);
	for (size_t i = 0; i < runner->active_count && r == 0; i++)
		r = watch_add(watch,
			batch_jobs_find(&runner->jobs, runner->active[i])->fd, POLLIN);
	watch_until(watch, wake_ms);
	watch_until(watch, runner->kill_ms);
	watch_until(watch, runner->leave_ms);
	if (runner->put_off_ms && !runner->stop_count)
		watch_until(watch, runner->put_off_ms);
	if (runner->write_ends_ms)
		watch_until(watch, runner->write_ends_ms);
	return r == 0 ? watch_wait(watch) : r;
}

/*
 * The main loop.  Each turn handles all that has happened, and then waits.  The order matters.  The
 * messages of the children are read before their exits, because a child that exits without having
 * reported an end has failed.  The jobs file comes after both, because its edits depend on the
 * states of the jobs.  New starts come last.
 *
 * Returns 0 when the batch is done, or a negative errno.
 */
static int runner_loop(struct batch_runner *runner)
{
	const struct settings *settings = runner->context.settings;

	for (;;) {
		int64_t now_ms, wake_ms;
		int r;

		watch_begin(&runner->watch);
		if (runner->put_off_ms && clock_boot_ms() >= runner->put_off_ms)
			runner->put_off_ms = 0;
		runner_read_signals(runner);
		batch_active_receive(runner);
		batch_active_reap(runner);
		batch_adopt_check(runner);
		if (runner->write_ends_ms && clock_boot_ms() >= runner->write_ends_ms)
			(void)!batch_record_missing_ends(runner); /* tries again later */
		if (!runner->stop_count && !is_input_abandoned(runner))
			runner_check_file(runner);
		batch_edit_review(runner);
		if (settings->batch.fail_fast && !runner->stop_count &&
			has_failed_job(runner)) {
			runner_note(runner, "a job has failed: ending the others");
			runner_stop(runner);
		}
		runner_start_jobs(runner);
		now_ms = clock_boot_ms();
		runner->board.now_ms = clock_real_ms();
		if (now_ms >= runner->kill_ms)
			runner_kill_all(runner);
		if (is_runner_done(runner))
			return 0;
		wake_ms = batch_show_step(&runner->show, &runner->board, now_ms, false);
		r = runner_wait(runner, wake_ms);
		if (r < 0)
			return r;
	}
}

/* --- the end ----------------------------------------------------------------------- */

/* Prints the failed jobs that were not listed yet, each with its log. */
static void runner_list_failures(struct batch_runner *runner)
{
	const struct settings *settings = runner->context.settings;

	if (settings->output.json || settings->output.quiet || runner->show.is_closed)
		return;
	batch_show_clear(&runner->show);
	batch_report_failures(
		&runner->jobs, runner->journal.folder, FAILURES_MAX, stdout);
}

/* Says what earlier runs have done. */
static void runner_note_earlier(struct batch_runner *runner)
{
	struct batch_counts counts = batch_count(&runner->jobs);
	unsigned ended = counts.all - counts.running - counts.waiting;
	char ids[256], ends[128];
	struct text text = TEXT_ON(ids), how = TEXT_ON(ends);

	batch_report_add_jobs(&runner->jobs, runner->active, runner->active_count, &text);
	if (runner->active_count)
		runner_note(runner, "jobs of an earlier run that have not ended: %s%s",
			ids, text.cut ? "…" : "");
	counts.running = counts.waiting = 0;
	batch_report_add_counts(&counts, false, &how);
	if (ended)
		runner_note(runner,
			"ended in an earlier run and now skipped: %u of %u lines (%s); "
			"--fresh runs all lines again, a new name= runs its line again",
			ended, counts.all, ends);
	runner_list_failures(runner);
}

/* Tries once more to write the ends that the journal lacks; prints which jobs still lack theirs. */
static void runner_write_last_ends(struct batch_runner *runner)
{
	char numbers[128];
	struct text text = TEXT_ON(numbers);

	if (batch_record_missing_ends(runner) == 0)
		return;
	batch_record_add_missing(runner, &text);
	batch_show_clear(&runner->show);
	diag("the journal in '%s' lacks the ends of entries %s%s: the next run runs them "
	     "again, unless you delete their lines first",
		runner->journal.folder, numbers, text.cut ? "…" : "");
}

/*
 * Returns the exit status: EXIT_INTERRUPTED after a signal, else the highest status of the failed
 * jobs that are in the file or have ended in this run.  EXIT_MISUSE means that nothing has run.  So
 * if other jobs have run, a job that could not be run counts as one that gave up.
 */
static int runner_exit_status(const struct batch_runner *runner)
{
	int status = runner->is_bad || runner->show.has_no_output ? EXIT_MISUSE : 0;
	int not_run = 0;
	bool has_run = false;

	for (size_t i = 0; i < runner->jobs.count; i++) {
		const struct batch_job *job = &runner->jobs.all[i];
		int *worst = job->cause == BATCH_NOT_RUN ? &not_run : &status;

		if (!job->line && job->is_from_earlier)
			continue;
		has_run = has_run || (job->was_started && job->cause != BATCH_NOT_RUN);
		if (batch_is_failed(job) && job->status > *worst)
			*worst = job->status;
	}
	if (has_run && not_run == EXIT_MISUSE)
		not_run = EXIT_GAVE_UP;
	if (runner->was_signalled)
		return EXIT_INTERRUPTED;
	return not_run > status ? not_run : status;
}

static void runner_summarize(struct batch_runner *runner, int status)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_SUMMARY, 0);
	struct text text = TEXT_ON(event.text);

	event.counts = batch_count(&runner->jobs);
	event.ran_ms = clock_real_ms() - runner->board.begun_ms;
	event.status = status;
	batch_report_summary(&event.counts, event.ran_ms, &text);
	(void)!batch_record_event(runner, &event);
	runner->board.now_ms = clock_real_ms();
	(void)batch_show_step(&runner->show, &runner->board, clock_boot_ms(), true);
}

int batch_runner_run(struct batch_runner *runner)
{
	struct why why = WHY_NONE;
	int status, r = 0;

	if (!runner->file.is_pipe)
		r = batch_edit_apply(runner, &why);
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	runner_note_earlier(runner);
	diag_hurry(DIAG_HURRY_MS);
	r = runner_loop(runner);
	diag_hurry(-1);
	if (r < 0)
		diag("cannot go on: %s", strerror(-r));
	runner_write_last_ends(runner);
	status = r < 0 ? EXIT_MISUSE : runner_exit_status(runner);
	runner_list_failures(runner);
	runner_summarize(runner, status);
	/* the summary may have been the first output that could not be written */
	return r < 0 ? status : runner_exit_status(runner);
}
