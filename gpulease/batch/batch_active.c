#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "array.h"
#include "batch_active.h"
#include "batch_member.h"
#include "batch_record.h"
#include "clock.h"
#include "diag.h"
#include "exitcodes.h"

enum {
	PUT_OFF_MS = 10 * 1000, /* after a failed start, before the next one */
	QUIET_MS = 60 * 1000,   /* without failures: then a reason is printed again */
};

/* --- starts ------------------------------------------------------------------------ */

int batch_active_add(struct batch_runner *runner, const struct batch_job *job)
{
	uint64_t *active = array_grow(runner->active, sizeof(*active),
		runner->active_count, &runner->active_room);

	if (!active)
		return -ENOMEM;
	runner->active = active;
	active[runner->active_count++] = job->number;
	return 0;
}

void batch_active_remove(struct batch_runner *runner, size_t at)
{
	runner->active[at] = runner->active[--runner->active_count];
}

static struct batch_job *active_job_at(const struct batch_runner *runner, size_t at)
{
	return batch_jobs_find(&runner->jobs, runner->active[at]);
}

/*
 * Puts off all starts after a failure that is not the line's fault and may pass: no process could
 * be created, or the user has as many waiting tickets as the configuration allows.  Prints @why
 * (NULL: nothing) unless it was printed a moment ago.
 */
static void active_put_off(
	struct batch_runner *runner, const struct batch_job *job, const char *why)
{
	int64_t now_ms = clock_boot_ms();
	bool is_told = why && strcmp(runner->put_off_reason.text, why) == 0 &&
		       now_ms - runner->put_off_last_ms < QUIET_MS;

	runner->put_off_ms = now_ms + PUT_OFF_MS;
	runner->put_off_last_ms = now_ms;
	if (!why || is_told)
		return;
	why_set(&runner->put_off_reason, "%s", why);
	batch_show_clear(&runner->show);
	note("cannot start entry %llu now: %s; gpulease tries again every %d s",
		(unsigned long long)job->number, why, PUT_OFF_MS / 1000);
}

void batch_active_start(struct batch_runner *runner, struct batch_job *job)
{
	int r = batch_active_add(runner, job);

	if (r < 0) {
		active_put_off(runner, job, strerror(-r));
		return;
	}
	/* from here until BATCH_STARTED is in the journal a crash leaves the job to be run again */
	job->is_recalled = job->is_cancelling = false;
	job->ticket = job->slurm_job = 0;
	free(job->reason);
	job->reason = NULL;
	job->line_hash = batch_line_hash(job->line);
	r = batch_child_start(&runner->launcher, job);
	if (r == 0)
		return;
	runner->active_count--;
	if (r == -ELOOP || r == -ENAMETOOLONG)
		batch_record_end(runner, job, BATCH_NOT_RUN, EXIT_MISUSE,
			"its log is a link, or its name too long");
	else
		active_put_off(runner, job, strerror(-r));
}

/* --- messages ---------------------------------------------------------------------- */

/*
 * Handles one message of job @number.  An event that the child could not write to the journal is
 * written by the runner.
 */
static void active_take_line(
	struct batch_runner *runner, uint64_t number, const char *line, size_t size)
{
	bool is_unwritten = line[0] == BATCH_UNWRITTEN;
	struct batch_event event;

	if (batch_event_parse(line + is_unwritten, size - is_unwritten, &event) < 0 ||
		event.job != number)
		return;
	if (is_unwritten)
		(void)!batch_record_event(runner, &event);
	else
		batch_record_apply(runner, &event);
}

/* Reads the messages of one child until there is none; closes the socket at its end. */
static void active_receive_job(struct batch_runner *runner, uint64_t number)
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
		active_take_line(runner, number, line, (size_t)size);
	}
}

void batch_active_receive(struct batch_runner *runner)
{
	for (size_t i = 0; i < runner->active_count; i++)
		active_receive_job(runner, runner->active[i]);
}

/* --- exits ------------------------------------------------------------------------- */

/*
 * Puts off the starts because the process of @job could not begin for a reason that passes, which
 * it has sent.  Without a ticket that reason is the limit of waiting tickets, which is not printed.
 */
static void active_put_off_as_reported(
	struct batch_runner *runner, const struct batch_job *job)
{
	active_put_off(runner, job,
		!job->reason                              ? "its process cannot begin"
		: job->ticket || runner->launcher.prepare ? job->reason
							  : NULL);
}

/*
 * Handles the exit of the process of @job with @status, as waitpid(2) returns it.  The process may
 * have sent its end just before, so its last messages are read first.
 */
static void active_take_exit(
	struct batch_runner *runner, struct batch_job *job, int status)
{
	bool is_to_come_again;

	active_receive_job(runner, job->number);
	close_fd(&job->fd);
	job->pid = 0;
	if (job->state == BATCH_RUNNING)
		return; /* killed without a report: its command may still run (batch_adopt.h) */
	is_to_come_again = job->is_recalled || runner->stop_count;
	/* a process that was killed has not cancelled its job of Slurm, so another one finds it */
	if (job->state == BATCH_IN_QUEUE && !is_to_come_again &&
		runner->launcher.prepare && WIFSIGNALED(status)) {
		active_put_off(runner, job, "its process was killed");
		is_to_come_again = true;
	}
	if (job->state == BATCH_IN_QUEUE && !is_to_come_again && WIFEXITED(status) &&
		WEXITSTATUS(status) == EXIT_GAVE_UP) {
		active_put_off_as_reported(runner, job);
		is_to_come_again = true;
	}
	if (job->state == BATCH_IN_QUEUE && is_to_come_again) {
		batch_jobs_return(job);
	} else if (job->state == BATCH_IN_QUEUE) {
		batch_record_end(runner, job, BATCH_NOT_RUN,
			WIFSIGNALED(status)   ? 128 + WTERMSIG(status)
			: WEXITSTATUS(status) ? WEXITSTATUS(status)
					      : EXIT_MISUSE,
			"its process ended while it waited");
	}
	if (job->state == BATCH_NEW)
		batch_plan_rescan(&runner->plan);
	batch_show_changed(&runner->show);
}

void batch_active_reap(struct batch_runner *runner)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG);

		if (pid <= 0)
			return;
		/* a child that is not among them was one of batch_child_cancel() */
		for (size_t i = 0; i < runner->active_count; i++) {
			struct batch_job *job = active_job_at(runner, i);

			if (job->pid != pid)
				continue;
			active_take_exit(runner, job, status);
			if (job->state != BATCH_RUNNING)
				batch_active_remove(runner, i);
			break;
		}
	}
}
