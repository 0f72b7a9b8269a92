/* The jobs at work: started, heard of, ended, and those of a runner before. */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "array.h"
#include "batch_runner.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"

/* Where somebody has as many tickets waiting as he may, and none of them is ours. */
enum { PUT_OFF_MS = 10 * 1000 };

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
		job->is_of_before = false;
		if (event->kind == BATCH_STARTED || event->kind == BATCH_OVER)
			runner->put_off_ms = 0; /* one less waits */
	}
	batch_show_event(&runner->show, event, job, &runner->board);
}

int batch_happened(struct batch_runner *runner, struct batch_event *event)
{
	int r = 0;

	event->at_ms = clock_real_ms();
	if (batch_event_is_kept(event->kind))
		r = batch_journal_append(runner->journal.fd, event);
	if (r < 0 && !runner->has_journal_failed) {
		batch_show_clear(&runner->show);
		diag("cannot write the journal in '%s': %s", runner->journal.folder,
			strerror(-r));
	}
	runner->has_journal_failed = r < 0;
	batch_take_event(runner, event);
	return r;
}

void batch_end_job(struct batch_runner *runner, struct batch_job *job,
	enum batch_cause cause, int status, const char *text)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, job->number);

	event.cause = cause;
	event.is_by_line = job->is_cancelling && cause == BATCH_BY_CANCEL;
	if (job->line)
		job->asked = batch_asked(job->line);
	event.status = status;
	event.ticket = job->ticket;
	event.attempt = job->attempt;
	text_copy(event.text, sizeof(event.text), text);
	text_copy(event.name, sizeof(event.name), job->name);
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

/* What cannot be had now is no fault of the line's: it is started another time. */
static void put_off(struct batch_runner *runner, struct batch_job *job, int error)
{
	runner->put_off_ms = clock_boot_ms() + PUT_OFF_MS;
	if (runner->put_off_for == error)
		return;
	runner->put_off_for = error;
	batch_show_clear(&runner->show);
	note("cannot start job %llu now: %s; tried again every %d s",
		(unsigned long long)job->number, strerror(-error), PUT_OFF_MS / 1000);
}

void batch_start_job(struct batch_runner *runner, struct batch_job *job)
{
	int r = batch_note_active(runner, job);

	if (r < 0) {
		put_off(runner, job, r);
		return;
	}
	job->is_recalled = job->is_cancelling = false;
	job->ticket = 0;
	job->asked = batch_asked(job->line);
	r = batch_child_start(&runner->nursery, job);
	if (r == 0) {
		runner->put_off_for = 0;
		return;
	}
	runner->active_count--;
	if (r == -ELOOP || r == -ENAMETOOLONG)
		batch_end_job(runner, job, BATCH_NOT_RUN, EXIT_MISUSE,
			"its log is a link, or its name too long");
	else
		put_off(runner, job, r);
}

/* --- what they tell ---------------------------------------------------------------- */

static void hear_job(struct batch_runner *runner, uint64_t number)
{
	static char line[BATCH_EVENT_SIZE];
	struct batch_job *job = batch_jobs_find(&runner->jobs, number);

	while (job->fd >= 0) {
		struct batch_event event;
		ssize_t size = recv(job->fd, line, sizeof(line), MSG_DONTWAIT);

		if (size < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (size <= 0) {
			close_fd(&job->fd);
			return;
		}
		size -= line[size - 1] == '\n';
		if (batch_event_parse(line, (size_t)size, &event) == 0 &&
			event.job == number)
			batch_take_event(runner, &event);
	}
}

void batch_hear(struct batch_runner *runner)
{
	for (size_t i = 0; i < runner->active_count; i++)
		hear_job(runner, runner->active[i]);
}

/* --- how they end ------------------------------------------------------------------ */

/* Its process has ended with @status, as waitpid(2) has it. */
static void see_end(struct batch_runner *runner, struct batch_job *job, int status)
{
	hear_job(runner, job->number);
	close_fd(&job->fd);
	job->pid = 0;
	if (job->state == BATCH_RUNNING)
		return; /* killed, without a word: what it has started may run on */
	if (job->state == BATCH_IN_QUEUE && !job->ticket && WIFEXITED(status) &&
		WEXITSTATUS(status) == EXIT_GAVE_UP && !job->is_recalled)
		runner->put_off_ms = clock_boot_ms() + PUT_OFF_MS;
	if (job->state == BATCH_IN_QUEUE &&
		(job->is_recalled || runner->stops || runner->put_off_ms)) {
		job->state = BATCH_NEW;
		job->ticket = 0;
		batch_plan_again(&runner->plan);
	} else if (job->state == BATCH_IN_QUEUE) {
		batch_end_job(runner, job, BATCH_NOT_RUN,
			WIFSIGNALED(status)   ? 128 + WTERMSIG(status)
			: WEXITSTATUS(status) ? WEXITSTATUS(status)
					      : EXIT_MISUSE,
			"its process ended while it waited");
	}
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
