/* The jobs at work: started, heard of, ended, and those of a runner before. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "array.h"
#include "batch_member.h"
#include "batch_runner.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"

enum {
	/* as where somebody has as many tickets waiting as he may, and none of them is ours */
	PUT_OFF_MS = 10 * 1000,
	QUIET_MS = 60 * 1000, /* without anything put off: its reason is news again */
	KEEP_MS = 10 * 1000,  /* between two tries to write ends that the journal lacks */
};

/* --- events ------------------------------------------------------------------------ */

/* Of an event that has come, or that we make: its job, the board, the line. */
void batch_take_event(struct batch_runner *runner, const struct batch_event *event)
{
	struct batch_job *job = NULL;

	if (event->job) {
		int r = batch_jobs_apply(&runner->jobs, event);

		if (r < 0) {
			verbose("an event of job %llu is ignored: %s",
				(unsigned long long)event->job, strerror(-r));
			return;
		}
		job = batch_jobs_find(&runner->jobs, event->job);
		job->is_of_before = job->is_unkept = false;
		if (event->kind == BATCH_STARTED || event->kind == BATCH_OVER)
			runner->put_off_ms = 0; /* one less waits */
	}
	batch_show_event(&runner->show, event, job, &runner->board);
}

/* Into the journal.  0 or a negative errno; it is told the first time. */
static int keep(struct batch_runner *runner, const struct batch_event *event)
{
	int r = batch_journal_append(runner->journal.fd, event);

	if (r < 0 && !runner->has_journal_failed) {
		batch_show_clear(&runner->show);
		diag("cannot write the journal in '%s': %s", runner->journal.folder,
			strerror(-r));
	}
	runner->has_journal_failed = r < 0;
	return r;
}

int batch_happened(struct batch_runner *runner, struct batch_event *event)
{
	int r = 0;

	if (!event->at_ms)
		event->at_ms = clock_real_ms();
	if (batch_event_is_kept(event->kind))
		r = keep(runner, event);
	/* nobody who comes later would know of that job: its line is looked at again */
	if (r < 0 && event->kind == BATCH_SEEN)
		return r;
	batch_take_event(runner, event);
	if (r < 0 && event->kind == BATCH_OVER) {
		batch_jobs_find(&runner->jobs, event->job)->is_unkept = true;
		runner->keep_ms = clock_boot_ms() + KEEP_MS;
	}
	return r;
}

/* With what is known of it: as its end was told, where it was. */
static struct batch_event end_of(const struct batch_job *job)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, job->number);

	event.at_ms = job->ended_ms;
	event.cause = job->cause;
	event.status = job->status;
	event.is_by_line = job->is_by_line;
	event.ticket = job->ticket;
	event.attempt = job->attempt;
	event.declared_mib = job->declared_mib;
	event.vram_mib = job->vram_mib;
	event.peak_mib = job->peak_mib;
	event.limit_ms = job->limit_ms;
	event.waited_ms = job->waited_ms;
	event.ran_ms = job->ran_ms;
	event.busy_mean = job->busy_mean;
	event.busy_peak = job->busy_peak;
	text_copy(event.name, sizeof(event.name), job->name);
	text_copy(event.gpus, sizeof(event.gpus), job->gpus);
	text_copy(event.text, sizeof(event.text), job->reason ? job->reason : "");
	return event;
}

/* One that is to be run again needs no line: as far as the journal knows it is anyway. */
static bool lacks_end(const struct batch_job *job)
{
	return job->is_unkept && job->state == BATCH_ENDED;
}

int batch_keep_ends(struct batch_runner *runner)
{
	runner->keep_ms = 0;
	for (size_t i = 0; i < runner->jobs.count; i++) {
		struct batch_job *job = &runner->jobs.all[i];
		struct batch_event event;
		int r;

		if (!lacks_end(job))
			continue;
		event = end_of(job);
		r = keep(runner, &event);
		if (r < 0) {
			runner->keep_ms = clock_boot_ms() + KEEP_MS;
			return r;
		}
		job->is_unkept = false;
	}
	return 0;
}

void batch_add_unkept(const struct batch_runner *runner, struct text *out)
{
	uint64_t range[2] = { 0 };

	for (size_t i = 0; i < runner->jobs.count; i++)
		if (lacks_end(&runner->jobs.all[i]))
			batch_add_number(runner->jobs.all[i].number, false, range, out);
	batch_add_number(0, true, range, out);
}

void batch_end_job(struct batch_runner *runner, struct batch_job *job,
	enum batch_cause cause, int status, const char *text)
{
	struct batch_event event = end_of(job);

	event.at_ms = 0; /* now */
	event.cause = cause;
	/* when all are told to end it has most likely obeyed, and is run again */
	event.is_interrupted =
		runner->stops &&
		(cause == BATCH_IS_LOST || (cause == BATCH_ITSELF && status != 0));
	event.is_by_line = job->is_cancelling && cause == BATCH_BY_CANCEL;
	if (job->line)
		job->asked = batch_asked(job->line);
	event.status = status;
	text_copy(event.text, sizeof(event.text), text);
	(void)!batch_happened(runner, &event);
}

/* --- who is at work ---------------------------------------------------------------- */

int batch_note_active(struct batch_runner *runner, const struct batch_job *job)
{
	uint64_t *active = array_grow(runner->active, sizeof(*active),
		runner->active_count, &runner->active_room);

	if (!active)
		return -ENOMEM;
	runner->active = active;
	active[runner->active_count++] = job->number;
	return 0;
}

void batch_forget_active(struct batch_runner *runner, size_t at)
{
	runner->active[at] = runner->active[--runner->active_count];
}

static struct batch_job *active_job(const struct batch_runner *runner, size_t at)
{
	return batch_jobs_find(&runner->jobs, runner->active[at]);
}

/*
 * What cannot be had now is no fault of the line's: it is started another time.  @why NULL: that
 * is nothing to tell.
 */
static void put_off(
	struct batch_runner *runner, const struct batch_job *job, const char *why)
{
	int64_t now_ms = clock_boot_ms();
	bool is_told = why && strcmp(runner->put_off_for.text, why) == 0 &&
		       now_ms - runner->put_off_last_ms < QUIET_MS;

	runner->put_off_ms = now_ms + PUT_OFF_MS;
	runner->put_off_last_ms = now_ms;
	if (!why || is_told)
		return;
	why_set(&runner->put_off_for, "%s", why);
	batch_show_clear(&runner->show);
	note("cannot start job %llu now: %s; tried again every %d s",
		(unsigned long long)job->number, why, PUT_OFF_MS / 1000);
}

void batch_start_job(struct batch_runner *runner, struct batch_job *job)
{
	int r = batch_note_active(runner, job);

	if (r < 0) {
		put_off(runner, job, strerror(-r));
		return;
	}
	job->is_recalled = job->is_cancelling = false;
	job->ticket = 0;
	free(job->reason);
	job->reason = NULL;
	job->asked = batch_asked(job->line);
	r = batch_child_start(&runner->nursery, job);
	if (r == 0)
		return;
	runner->active_count--;
	if (r == -ELOOP || r == -ENAMETOOLONG)
		batch_end_job(runner, job, BATCH_NOT_RUN, EXIT_MISUSE,
			"its log is a link, or its name too long");
	else
		put_off(runner, job, strerror(-r));
}

/* --- what they tell ---------------------------------------------------------------- */

/* One of job @number.  What it could not put into the journal is for us to do. */
static void take_line(
	struct batch_runner *runner, uint64_t number, const char *line, size_t size)
{
	bool is_unkept = line[0] == BATCH_UNKEPT;
	struct batch_event event;

	if (batch_event_parse(line + is_unkept, size - is_unkept, &event) < 0 ||
		event.job != number)
		return;
	if (is_unkept)
		(void)!batch_happened(runner, &event);
	else
		batch_take_event(runner, &event);
}

static void hear_job(struct batch_runner *runner, uint64_t number)
{
	static char line[BATCH_EVENT_SIZE];
	struct batch_job *job = batch_jobs_find(&runner->jobs, number);

	while (job->fd >= 0) {
		ssize_t size = recv(job->fd, line, sizeof(line), MSG_DONTWAIT);

		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (size <= 0) {
			close_fd(&job->fd);
			return;
		}
		size -= line[size - 1] == '\n';
		take_line(runner, number, line, (size_t)size);
	}
}

void batch_hear(struct batch_runner *runner)
{
	for (size_t i = 0; i < runner->active_count; i++)
		hear_job(runner, runner->active[i]);
}

/* --- how they end ------------------------------------------------------------------ */

/*
 * Its process could not begin for something that passes, and has told what.  Without a ticket it
 * is that others wait: no news.
 */
static void put_off_as_told(struct batch_runner *runner, const struct batch_job *job)
{
	put_off(runner, job,
		!job->reason  ? "its process cannot begin"
		: job->ticket ? job->reason
			      : NULL);
}

/* Its process has ended with @status, as waitpid(2) has it. */
static void see_end(struct batch_runner *runner, struct batch_job *job, int status)
{
	bool is_to_come_again;

	hear_job(runner, job->number);
	close_fd(&job->fd);
	job->pid = 0;
	if (job->state == BATCH_RUNNING)
		return; /* killed, without a word: what it has started may run on */
	is_to_come_again = job->is_recalled || runner->stops;
	if (job->state == BATCH_IN_QUEUE && !is_to_come_again && WIFEXITED(status) &&
		WEXITSTATUS(status) == EXIT_GAVE_UP) {
		put_off_as_told(runner, job);
		is_to_come_again = true;
	}
	if (job->state == BATCH_IN_QUEUE && is_to_come_again) {
		job->state = BATCH_NEW;
		job->ticket = 0;
	} else if (job->state == BATCH_IN_QUEUE) {
		batch_end_job(runner, job, BATCH_NOT_RUN,
			WIFSIGNALED(status)   ? 128 + WTERMSIG(status)
			: WEXITSTATUS(status) ? WEXITSTATUS(status)
					      : EXIT_MISUSE,
			"its process ended while it waited");
	}
	if (job->state == BATCH_NEW)
		batch_plan_again(&runner->plan);
	batch_show_changed(&runner->show);
}

void batch_reap(struct batch_runner *runner)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0)
			return;
		for (size_t i = 0; i < runner->active_count; i++) {
			struct batch_job *job = active_job(runner, i);

			if (job->pid != pid)
				continue;
			see_end(runner, job, status);
			if (job->state != BATCH_RUNNING)
				batch_forget_active(runner, i);
			break;
		}
	}
}
