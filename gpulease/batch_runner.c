#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/signalfd.h>

#include "batch_runner.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"

enum {
	QUEUE_MAX = 16,   /* tickets that wait: more would be in other people's way */
	ACTIVE_MAX = 256, /* that wait or run; without a GPU they would all run at once */
	LEAVE_MS = 10 * 1000, /* after KILL */
	AGAIN_MS = 10 * 1000, /* where the journal cannot be written */
	PIPE_MS = 100,        /* between two looks at what comes through a pipe */
	FAILURES_MAX = 100,   /* that are listed, the newest */
	EXIT_INTERRUPTED = 130,
};

/* --- telling ----------------------------------------------------------------------- */

static void tell(struct batch_runner *runner, const char *format, ...) PRINTF_LIKE(2, 3);

static void tell(struct batch_runner *runner, const char *format, ...)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_NOTE, 0);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(event.text, sizeof(event.text), format, args);
	va_end(args);
	(void)!batch_happened(runner, &event);
}

/* --- stopping ---------------------------------------------------------------------- */

static void kill_all(struct batch_runner *runner)
{
	autofree uint64_t *tickets = calloc(runner->active_count + 1, sizeof(*tickets));
	size_t count = 0;

	runner->kill_ms = INT64_MAX;
	runner->leave_ms = clock_boot_ms() + LEAVE_MS;
	for (size_t i = 0; tickets && i < runner->active_count; i++) {
		const struct batch_job *job =
			batch_jobs_find(&runner->jobs, runner->active[i]);

		if (job->ticket)
			tickets[count++] = job->ticket;
		else if (job->pid)
			(void)kill(job->pid, SIGKILL);
	}
	if (count)
		(void)!batch_child_cancel(&runner->nursery, tickets, count, 0);
}

/* The first time TERM, and KILL after the grace; the second time KILL. */
static void stop(struct batch_runner *runner)
{
	runner->board.is_stopping = true;
	batch_show_changed(&runner->show);
	if (runner->stops++) {
		if (runner->kill_ms != INT64_MAX || runner->stops == 2)
			kill_all(runner);
		return;
	}
	runner->kill_ms = clock_boot_ms() + runner->context.settings->grace_ms;
	for (size_t i = 0; i < runner->active_count; i++)
		batch_stop_job(runner, batch_jobs_find(&runner->jobs, runner->active[i]));
}

static void read_signals(struct batch_runner *runner)
{
	struct signalfd_siginfo info;

	while (read(runner->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			continue;
		runner->is_told = true;
		if (!runner->stops && runner->active_count)
			tell(runner, "interrupted: ending %zu job%s; once more kills",
				runner->active_count,
				runner->active_count == 1 ? "" : "s");
		stop(runner);
	}
}

/* --- working ----------------------------------------------------------------------- */

/* What comes through a pipe cannot be mended: the rest is not read. */
static bool is_given_up(const struct batch_runner *runner)
{
	return runner->file.is_pipe && runner->is_bad;
}

/* Something is wrong with the file. */
static void complain(struct batch_runner *runner, const struct why *why)
{
	batch_show_clear(&runner->show);
	diag("%s; %s", why->text,
		is_given_up(runner) ? "the rest is not read"
				    : "what was there before goes on");
}

/* Takes over what was read.  Where that fails it is told, and done again where it may go better. */
static void take_lines(struct batch_runner *runner)
{
	struct why why = WHY_NONE;
	int r = batch_take_lines(runner, &why);

	runner->is_bad = r == -EINVAL;
	runner->again_ms = r < 0 && r != -EINVAL ? clock_boot_ms() + AGAIN_MS : 0;
	/* another form of the file may have the same error */
	if (r < 0 && strcmp(why.text, runner->complaint.text) != 0)
		complain(runner, &why);
	runner->complaint = why;
}

/* A new form of the file; a bad one changes nothing. */
static void take_file(struct batch_runner *runner)
{
	struct why why = WHY_NONE;
	int64_t now_ms = clock_boot_ms();
	int r;

	if (now_ms < runner->pipe_ms)
		return;
	r = batch_file_step(&runner->file, now_ms, &why);
	if (r < 0) {
		runner->is_bad = runner->is_bad || runner->file.is_pipe;
		complain(runner, &why);
	} else if (r > 0 || (runner->again_ms && now_ms >= runner->again_ms)) {
		take_lines(runner);
		/* all is looked at again each time, so not for each line that comes */
		runner->pipe_ms = runner->file.is_pipe ? now_ms + PIPE_MS : 0;
	}
}

static bool may_start(const struct batch_runner *runner)
{
	unsigned at_once = runner->context.settings->jobs_at_once;
	size_t waiting = 0;

	if (runner->put_off_ms)
		return false;
	for (size_t i = 0; i < runner->active_count; i++) {
		const struct batch_job *job =
			batch_jobs_find(&runner->jobs, runner->active[i]);

		/*
		 * In the order of the file: each waits for the ticket of the one before,
		 * and for those that are to leave the queue, perhaps to come again.
		 */
		if (job->state == BATCH_IN_QUEUE && (!job->ticket || job->is_recalled))
			return false;
		waiting += job->state == BATCH_IN_QUEUE || job->is_between;
	}
	return waiting < QUEUE_MAX &&
	       runner->active_count < (at_once ? at_once : ACTIVE_MAX);
}

static void start_jobs(struct batch_runner *runner)
{
	while (!runner->stops) {
		struct batch_job *job = NULL;
		uint64_t other = 0;
		char text[64];

		switch (batch_plan_next(&runner->plan, may_start(runner), &job, &other)) {
		case BATCH_STEP_WAIT:
			return;
		case BATCH_STEP_START:
			batch_start_job(runner, job);
			break;
		case BATCH_STEP_CANCEL:
			job->is_cancelling = true;
			batch_end_job(runner, job, BATCH_BY_CANCEL, 128 + SIGTERM,
				"by its line in the file");
			break;
		case BATCH_STEP_DROP:
			job->is_dropped = true;
			batch_end_job(runner, job, BATCH_NOT_RUN, 0, "done before");
			break;
		case BATCH_STEP_GIVE_UP:
			(void)snprintf(text, sizeof(text), "job %llu has failed",
				(unsigned long long)other);
			batch_end_job(runner, job, BATCH_NOT_RUN, EXIT_GAVE_UP, text);
			break;
		}
	}
}

/* Whether lines may still come that are to be run: also such as are there, and were not read. */
static bool expects_more(struct batch_runner *runner)
{
	if (is_given_up(runner))
		return false;
	return (runner->context.settings->watch && !runner->file.is_pipe) ||
	       batch_file_is_behind(&runner->file, clock_boot_ms());
}

/* Nothing is left to do; or all that is left waits for each other, and one of it gives up. */
static bool is_done(struct batch_runner *runner)
{
	struct batch_job *job;

	if (runner->stops)
		return !runner->active_count || clock_boot_ms() >= runner->leave_ms;
	while (!runner->active_count && !runner->put_off_ms && !runner->again_ms &&
		!expects_more(runner)) {
		job = batch_plan_find_stuck(&runner->plan);
		if (!job)
			return true;
		batch_end_job(runner, job, BATCH_NOT_RUN, EXIT_GAVE_UP,
			"what it is to come after is not in the file, or waits for it");
		start_jobs(runner);
	}
	return false;
}

static bool has_failed(const struct batch_runner *runner)
{
	for (size_t i = 0; i < runner->jobs.count; i++)
		if (!runner->jobs.all[i].is_of_before &&
			batch_is_failed(&runner->jobs.all[i]))
			return true;
	return false;
}

/* What the file may have to say, as long as anybody asks for it. */
static int watch_file(struct batch_runner *runner)
{
	struct watch *watch = &runner->watch;
	struct pollfd fds[BATCH_FILE_FDS];
	unsigned count;
	int r = 0;

	if (runner->stops || is_given_up(runner))
		return 0;
	if (clock_boot_ms() < runner->pipe_ms) {
		watch_until(watch, runner->pipe_ms);
		return 0;
	}
	count = batch_file_poll(&runner->file, fds);
	for (unsigned i = 0; i < count && r == 0; i++)
		r = watch_add(watch, fds[i].fd, fds[i].events);
	watch_until(watch, batch_file_wake_ms(&runner->file));
	if (runner->again_ms)
		watch_until(watch, runner->again_ms);
	return r;
}

static int wait_for_more(struct batch_runner *runner, int64_t wake_ms)
{
	struct watch *watch = &runner->watch;
	int r = watch_add(watch, runner->signal_fd, POLLIN);

	if (r == 0)
		r = watch_file(runner);
	for (size_t i = 0; i < runner->active_count && r == 0; i++)
		r = watch_add(watch,
			batch_jobs_find(&runner->jobs, runner->active[i])->fd, POLLIN);
	watch_until(watch, wake_ms);
	watch_until(watch, runner->kill_ms);
	watch_until(watch, runner->leave_ms);
	if (runner->put_off_ms && !runner->stops)
		watch_until(watch, runner->put_off_ms);
	if (runner->keep_ms)
		watch_until(watch, runner->keep_ms);
	return r == 0 ? watch_wait(watch) : r;
}

static int work(struct batch_runner *runner)
{
	const struct settings *settings = runner->context.settings;

	for (;;) {
		int64_t now_ms, wake_ms;
		int r;

		watch_begin(&runner->watch);
		if (runner->put_off_ms && clock_boot_ms() >= runner->put_off_ms)
			runner->put_off_ms = 0;
		read_signals(runner);
		batch_hear(runner);
		batch_reap(runner);
		batch_look_after_adopted(runner);
		if (runner->keep_ms && clock_boot_ms() >= runner->keep_ms)
			(void)!batch_keep_ends(runner); /* and once more */
		if (!runner->stops && !is_given_up(runner))
			take_file(runner);
		batch_review_running(runner);
		if (settings->fail_fast && !runner->stops && has_failed(runner)) {
			tell(runner, "a job has failed: ending the others");
			stop(runner);
		}
		start_jobs(runner);
		now_ms = clock_boot_ms();
		runner->board.now_ms = clock_real_ms();
		if (now_ms >= runner->kill_ms)
			kill_all(runner);
		if (is_done(runner))
			return 0;
		wake_ms = batch_show_step(&runner->show, &runner->board, now_ms, false);
		r = wait_for_more(runner, wake_ms);
		if (r < 0)
			return r;
	}
}

/* --- the end ----------------------------------------------------------------------- */

/* Of the jobs that have failed since they were listed last, each with its log. */
static void list_failures(struct batch_runner *runner)
{
	const struct settings *settings = runner->context.settings;

	if (settings->json || settings->quiet || runner->show.is_deaf)
		return;
	batch_show_clear(&runner->show);
	batch_failures_print(&runner->jobs, runner->journal.folder, FAILURES_MAX, stdout);
}

/* What was done before this run, for people. */
static void tell_of_before(struct batch_runner *runner)
{
	struct batch_counts counts = batch_count(&runner->jobs);

	if (runner->active_count)
		tell(runner, "of an earlier run still at work: %zu",
			runner->active_count);
	if (counts.finished || counts.failed || counts.cancelled)
		tell(runner,
			"done before: %u finished, %u failed, %u cancelled, of %u; "
			"--fresh runs all again, another name= a line",
			counts.finished, counts.failed, counts.cancelled, counts.all);
	list_failures(runner);
}

/* Of the ends that the journal lacks: the last chance. */
static void keep_ends(struct batch_runner *runner)
{
	char numbers[128];
	struct text text = TEXT_ON(numbers);

	if (batch_keep_ends(runner) == 0)
		return;
	batch_add_unkept(runner, &text);
	batch_show_clear(&runner->show);
	diag("the journal in '%s' lacks the ends of jobs %s%s: the next run runs them "
	     "again, unless their lines are deleted before",
		runner->journal.folder, numbers, text.cut ? "…" : "");
}

/* The highest of all that the file has, and all that have run. */
static int exit_status(const struct batch_runner *runner)
{
	int status = runner->is_bad || runner->show.has_no_output ? EXIT_MISUSE : 0;

	for (size_t i = 0; i < runner->jobs.count; i++) {
		const struct batch_job *job = &runner->jobs.all[i];

		if ((job->line || !job->is_of_before) && batch_is_failed(job) &&
			job->status > status)
			status = job->status;
	}
	return runner->is_told ? EXIT_INTERRUPTED : status;
}

static void summarize(struct batch_runner *runner, int status)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_SUMMARY, 0);
	struct text text = TEXT_ON(event.text);

	event.counts = batch_count(&runner->jobs);
	event.ran_ms = clock_real_ms() - runner->board.begun_ms;
	event.status = status;
	batch_summary(&event.counts, event.ran_ms, &text);
	(void)!batch_happened(runner, &event);
	runner->board.now_ms = clock_real_ms();
	(void)batch_show_step(&runner->show, &runner->board, clock_boot_ms(), true);
}

int batch_runner_run(struct batch_runner *runner)
{
	struct why why = WHY_NONE;
	int status, r = 0;

	if (!runner->file.is_pipe)
		r = batch_take_lines(runner, &why);
	if (r < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	tell_of_before(runner);
	r = work(runner);
	if (r < 0)
		diag("cannot go on: %s", strerror(-r));
	keep_ends(runner);
	status = r < 0 ? EXIT_MISUSE : exit_status(runner);
	list_failures(runner);
	summarize(runner, status);
	/* that the output cannot be written may have come to light only now */
	return r < 0 ? status : exit_status(runner);
}
