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
static void take_event(struct batch_runner *runner, const struct batch_event *event)
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

void batch_happened(struct batch_runner *runner, struct batch_event *event)
{
	int r = 0;

	event->at_ms = clock_real_ms();
	if (batch_event_is_kept(event->kind))
		r = batch_journal_append(runner->journal.fd, event);
	if (r < 0) {
		batch_show_clear(&runner->show);
		diag("cannot write the journal in '%s': %s", runner->journal.folder,
			strerror(-r));
	}
	take_event(runner, event);
}

void batch_end_job(struct batch_runner *runner, struct batch_job *job,
	enum batch_cause cause, int status, const char *text)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, job->number);

	event.cause = cause;
	event.is_by_line = job->is_cancelling && cause == BATCH_BY_CANCEL;
	event.asked = job->line ? batch_asked(job->line) : 0;
	event.status = status;
	event.ticket = job->ticket;
	event.attempt = job->attempt;
	text_copy(event.text, sizeof(event.text), text);
	text_copy(event.name, sizeof(event.name), job->name);
	batch_happened(runner, &event);
}

/* --- who is at work ---------------------------------------------------------------- */

static int note_active(struct batch_runner *runner, const struct batch_job *job)
{
	uint64_t *active = array_grow(runner->active, sizeof(*active),
		runner->active_count, &runner->active_room);

	if (!active)
		return -ENOMEM;
	runner->active = active;
	active[runner->active_count++] = job->number;
	return 0;
}

static void forget_active(struct batch_runner *runner, size_t at)
{
	runner->active[at] = runner->active[--runner->active_count];
}

static struct batch_job *active_job(const struct batch_runner *runner, size_t at)
{
	return batch_jobs_find(&runner->jobs, runner->active[at]);
}

void batch_start_job(struct batch_runner *runner, struct batch_job *job)
{
	int r = note_active(runner, job);

	if (r == 0) {
		job->is_recalled = job->is_cancelling = false;
		job->ticket = 0;
		job->asked = batch_asked(job->line);
		r = batch_child_start(&runner->nursery, job);
	}
	if (r == 0)
		return;
	if (r != -ENOMEM || runner->active_count)
		runner->active_count -=
			runner->active_count &&
			runner->active[runner->active_count - 1] == job->number;
	batch_end_job(runner, job, BATCH_NOT_RUN, EXIT_MISUSE, strerror(-r));
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
			take_event(runner, &event);
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
			WIFSIGNALED(status) ? 128 + WTERMSIG(status)
					    : WEXITSTATUS(status),
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
				forget_active(runner, i);
			break;
		}
	}
}

/* --- jobs without a parent --------------------------------------------------------- */

/*
 * What the journal says of a job that is no child of ours and has ended.  Its supervisor may
 * have got it another lease meanwhile, which somebody it left behind still has.
 */
static void read_end(struct batch_runner *runner, struct batch_job *job)
{
	struct batch_jobs jobs = BATCH_JOBS_NONE;
	autofree uint64_t *list = NULL;
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, job->number);
	struct why why = WHY_NONE;
	const struct batch_job *told = NULL;
	size_t count, skipped;

	if (batch_journal_load(&runner->journal, &jobs, &list, &count, &skipped, &why) ==
		0)
		told = batch_jobs_find(&jobs, job->number);
	if (told && told->state == BATCH_RUNNING &&
		strcmp(told->owner.token, job->owner.token) != 0) {
		job->owner = told->owner; /* looked at the next time */
		job->attempt = told->attempt;
	} else if (!told || told->state == BATCH_RUNNING) {
		batch_end_job(runner, job, BATCH_IS_LOST, 128 + SIGKILL, "");
	} else {
		event.at_ms = told->ended_ms;
		event.status = told->status;
		event.cause = told->cause;
		event.is_interrupted = told->state == BATCH_NEW;
		event.ticket = told->ticket;
		event.attempt = told->attempt;
		event.ran_ms = told->ran_ms;
		event.peak_mib = told->peak_mib;
		event.declared_mib = told->declared_mib;
		event.vram_mib = told->vram_mib;
		event.busy_mean = told->busy_mean;
		event.busy_peak = told->busy_peak;
		text_copy(
			event.text, sizeof(event.text), told->reason ? told->reason : "");
		take_event(runner, &event);
		batch_plan_again(&runner->plan); /* interrupted, it is run again */
	}
	batch_jobs_release(&jobs);
}

void batch_look_after_adopted(struct batch_runner *runner)
{
	int64_t now_ms = clock_boot_ms();

	lives_begin(&runner->lives);
	for (size_t i = 0; i < runner->active_count;) {
		struct batch_job *job = active_job(runner, i);
		struct life *life;

		if (job->pid || job->state != BATCH_RUNNING) {
			i++;
			continue;
		}
		life = lives_judge(&runner->lives, &job->owner, true, now_ms);
		if (life && life_is_over(life)) {
			read_end(runner, job);
			if (job->state != BATCH_RUNNING) {
				forget_active(runner, i);
				continue;
			}
			life = lives_judge(&runner->lives, &job->owner, true, now_ms);
		}
		if (!life || life->unwatchable_ms || life_is_over(life))
			watch_until(&runner->watch, now_ms + 1000);
		if (life && (watch_add(&runner->watch, life->pidfd, POLLIN) < 0 ||
				    watch_add(&runner->watch, life->fifo_fd, 0) < 0))
			watch_until(&runner->watch, now_ms + 1000);
		i++;
	}
	lives_end(&runner->lives);
}

/*
 * What the journal has as running: it does, or it ended when nobody was there to say so, for
 * its supervisor died as well; then it is run again.
 */
void batch_adopt(struct batch_runner *runner)
{
	int64_t now_ms = clock_boot_ms();

	lives_begin(&runner->lives);
	for (size_t i = 0; i < runner->jobs.count; i++) {
		struct batch_job *job = &runner->jobs.all[i];
		const struct life *life = NULL;

		job->is_of_before = true;
		if (job->state != BATCH_RUNNING)
			continue;
		if (strcmp(job->boot, runner->context.dir.boot) == 0)
			life = lives_judge(&runner->lives, &job->owner, true, now_ms);
		if (life && !life_is_over(life) && note_active(runner, job) == 0)
			continue;
		job->state = BATCH_NEW;
		job->ticket = 0;
	}
	lives_end(&runner->lives);
}
