#include <signal.h>

#include "batch_active.h"
#include "batch_adopt.h"
#include "batch_load.h"
#include "batch_record.h"
#include "clock.h"

enum {
	STATUS_MS = 1000, /* the new parent of a command should have reaped it by then */
	STATUS_STEP_MS = 10,
};

/* --- events from the journal ------------------------------------------------------- */

/*
 * Returns the job of @event if it is an adopted job at work, of which only the journal reports
 * attempts and the end; else NULL.  The events of children also come through their sockets.
 */
static struct batch_job *adopt_job_of(
	const struct batch_runner *runner, const struct batch_event *event)
{
	struct batch_job *job = batch_jobs_find(&runner->jobs, event->job);

	return job && job->is_adopted && job->state == BATCH_RUNNING ? job : NULL;
}

/* Applies an event that the supervisor of an adopted job has appended to the journal. */
static void adopt_take_event(void *arg, const struct batch_event *event)
{
	struct batch_runner *runner = arg;
	const struct batch_job *job = adopt_job_of(runner, event);
	struct batch_event ours = *event;

	if (!job)
		return;
	/*
	 * Without a socket the job could not learn that the word in its line cancels it.  So the
	 * runner writes the end once more, and says that.
	 */
	if (event->kind == BATCH_OVER && event->cause == BATCH_BY_CANCEL &&
		!event->is_interrupted && !event->is_by_line && job->is_cancelling) {
		ours.is_by_line = true;
		(void)!batch_record_event(runner, &ours);
		return;
	}
	batch_record_apply(runner, event);
	if (job->state == BATCH_NEW)
		batch_plan_rescan(&runner->plan);
}

/* Keeps in @arg the last event that says whether its job runs. */
static void adopt_keep_last(void *arg, const struct batch_event *event)
{
	struct batch_event *last = arg;

	if (event->job == last->job &&
		(event->kind == BATCH_STARTED || event->kind == BATCH_ATTEMPT ||
			event->kind == BATCH_OVER))
		*last = *event;
}

/*
 * Looks in the whole journal for the end of @job, or for a later start, and applies it.  For a
 * child: its supervisor may have been killed after it wrote to the journal and before it wrote to
 * the socket.  Returns 0 or a negative errno.
 */
static int adopt_read_last(struct batch_runner *runner, const struct batch_job *job)
{
	struct batch_journal all = runner->journal; /* with a position of its own */
	struct batch_event last = BATCH_EVENT_OF(BATCH_EVENT_NONE, job->number);
	int r;

	all.read = 0;
	r = batch_journal_read_on(&all, adopt_keep_last, &last);
	if (r == 0 && (last.kind == BATCH_OVER ||
			      (last.kind == BATCH_STARTED &&
				      strcmp(last.owner.token, job->owner.token) != 0)))
		batch_record_apply(runner, &last);
	return r;
}

/*
 * Finds the end of a job of which no process is known to live.  First reads the journal, which may
 * have the end by now, or the start of another attempt with another lease.  If it has neither, the
 * supervisor died without a word, and the runner records the end itself, with @status (-1:
 * unknown).  A job of Slurm goes on without its supervisor, so it gets another one.
 */
static void adopt_find_end(struct batch_runner *runner, struct batch_job *job, int status)
{
	char token[TOKEN_SIZE];
	int r;

	text_copy(token, sizeof(token), job->owner.token);
	/* there is no gap: the job was found dead before, so it cannot write any more */
	r = job->is_adopted
		    ? batch_journal_read_on(&runner->journal, adopt_take_event, runner)
		    : adopt_read_last(runner, job);
	if (r < 0 || job->state != BATCH_RUNNING || strcmp(token, job->owner.token) != 0)
		return;
	if (runner->launcher.prepare && !runner->stop_count) {
		batch_jobs_return(job);
		batch_plan_rescan(&runner->plan);
	} else if (status < 0)
		batch_record_end(runner, job, BATCH_IS_LOST, 128 + SIGKILL, "");
	else
		batch_record_end(runner, job, BATCH_ITSELF, status, "");
}

/* --- whether they live ------------------------------------------------------------- */

/*
 * Returns the command of the job, as its ticket says: it may go on after its supervisor has died.
 * .pid is 0 if none is known.
 */
static struct command adopt_find_command(
	const struct batch_runner *runner, const struct batch_job *job)
{
	struct ticket_file file = TICKET_FILE_NONE;
	struct command command = COMMAND_NONE;
	struct ticket ticket;
	int kind;

	if (!job->ticket || ticket_open_to_read(runner->context.dir.fd, &file) < 0)
		return command;
	kind = ticket_read(&file, job->ticket, &ticket);
	/* a job that was queued again has a newer ticket; the token says which attempt this is */
	if (kind == TICKET_RECORD && ticket.latest)
		kind = ticket_read(&file, ticket.latest, &ticket);
	if (kind == TICKET_RECORD && strcmp(ticket.owner.token, job->owner.token) == 0)
		command = ticket.runs;
	ticket_release(&file);
	return command;
}

/*
 * Judges whether the job lives: its supervisor, and if that is dead, its command.  Returns NULL
 * without memory.
 */
static struct liveness *adopt_judge(
	struct batch_runner *runner, const struct batch_job *job, int64_t now_ms)
{
	struct liveness *life =
		liveness_set_judge(&runner->liveness, &job->owner, true, now_ms);
	struct command command;

	if (!life || life->process != LIVENESS_ENDED || life->is_orphaned)
		return life;
	command = adopt_find_command(runner, job);
	return liveness_set_judge_job(&runner->liveness, &job->owner, &command, now_ms);
}

/*
 * Whether the supervisor has returned its lease: between two attempts, or shortly before its end.
 */
static bool has_no_lease(const struct liveness *life)
{
	return life->fifo == LIVENESS_ENDED && !life->is_orphaned &&
	       !liveness_is_over(life);
}

/* Whether the exit status of a command that outlived its supervisor may become known soon. */
static bool can_status_come(const struct liveness *life, int64_t now_ms)
{
	return life->is_orphaned && liveness_may_tell(life) &&
	       now_ms - life->over_ms < STATUS_MS;
}

/*
 * Looks at one job, applies what is new, and adds what to wait for.  Its supervisor may write to
 * the journal, or die, at any moment in between; the next turn then sees it.
 */
static void adopt_check_job(
	struct batch_runner *runner, struct batch_job *job, int64_t now_ms)
{
	struct liveness *life = adopt_judge(runner, job, now_ms);

	/* if the journal cannot be read now, the timer below brings the next try */
	if (life && liveness_is_over(life) && can_status_come(life, now_ms))
		watch_until(&runner->watch, now_ms + STATUS_STEP_MS);
	else if (life && liveness_is_over(life))
		adopt_find_end(runner, job, life->is_orphaned ? life->status : -1);
	else if (life && has_no_lease(life))
		(void)!batch_journal_read_on(&runner->journal, adopt_take_event, runner);
	if (job->state != BATCH_RUNNING)
		return;
	life = adopt_judge(runner, job, now_ms);
	/* no descriptor becomes readable when a new attempt is in the journal: look by timer */
	if (!life || life->unwatchable_ms || liveness_is_over(life) || has_no_lease(life))
		watch_until(&runner->watch, now_ms + 1000);
	if (life && (watch_add(&runner->watch, life->pidfd, POLLIN) < 0 ||
			    watch_add(&runner->watch, life->fifo_fd, 0) < 0))
		watch_until(&runner->watch, now_ms + 1000);
}

void batch_adopt_check(struct batch_runner *runner)
{
	int64_t now_ms = clock_boot_ms();

	liveness_set_begin(&runner->liveness);
	for (size_t i = 0; i < runner->active_count; i++) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, runner->active[i]);

		if (!job->pid && job->state == BATCH_RUNNING)
			adopt_check_job(runner, job, now_ms);
	}
	/* only now, because reading for one job may have applied the end of another */
	for (size_t i = 0; i < runner->active_count;) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, runner->active[i]);

		if (job->pid || job->state == BATCH_RUNNING) {
			i++;
			continue;
		}
		job->is_adopted = false;
		batch_active_remove(runner, i);
	}
	liveness_set_end(&runner->liveness);
}

/* --- finding and ending them ------------------------------------------------------- */

/* Whether the job still lives; adds it to the jobs at work then.  A reboot ends every job. */
static bool is_job_alive(
	struct batch_runner *runner, const struct batch_job *job, int64_t now_ms)
{
	const struct liveness *life = NULL;

	if (strcmp(job->boot, runner->context.dir.boot) == 0)
		life = adopt_judge(runner, job, now_ms);
	return life && !liveness_is_over(life) && batch_active_add(runner, job) == 0;
}

/*
 * Applies an event that came after batch_journal_load().  Nothing is shown: the run has not begun.
 */
static void adopt_catch_up(void *arg, const struct batch_event *event)
{
	struct batch_runner *runner = arg;
	struct batch_job *job = adopt_job_of(runner, event);

	if (!job)
		return;
	(void)!batch_jobs_apply(&runner->jobs, event);
	job->is_from_earlier = true;
}

/*
 * Decides about a job that the journal had as running and that was found dead.  Since then the
 * journal may have got its end, or the start of another attempt, which is adopted.  With neither,
 * its supervisor has died as well, and the job becomes new: it is run again.
 */
static void adopt_settle(struct batch_runner *runner, struct batch_job *job)
{
	job->is_unresolved = false;
	if (job->state == BATCH_RUNNING && is_job_alive(runner, job, clock_boot_ms()))
		return;
	job->is_adopted = false;
	if (job->state == BATCH_ENDED)
		return;
	batch_jobs_return(job);
}

void batch_adopt_all(struct batch_runner *runner)
{
	int64_t now_ms = clock_boot_ms();
	bool has_dead = false;

	liveness_set_begin(&runner->liveness);
	for (size_t i = 0; i < runner->jobs.count; i++) {
		struct batch_job *job = &runner->jobs.all[i];

		job->is_from_earlier = true;
		if (job->state == BATCH_ENDED && job->cause == BATCH_NOT_RUN)
			batch_jobs_renew(job);
		job->is_adopted = job->state == BATCH_RUNNING;
		job->is_unresolved =
			job->is_adopted && !is_job_alive(runner, job, now_ms);
		has_dead = has_dead || job->is_unresolved;
	}
	/*
	 * A job that was found dead may have written its end after the journal was loaded, so
	 * read on before it counts as lost.  If that fails, it counts as lost.
	 */
	if (has_dead)
		(void)!batch_journal_read_on(&runner->journal, adopt_catch_up, runner);
	for (size_t i = 0; i < runner->jobs.count; i++)
		if (runner->jobs.all[i].is_unresolved)
			adopt_settle(runner, &runner->jobs.all[i]);
	liveness_set_end(&runner->liveness);
}

void batch_adopt_stop(struct batch_runner *runner, struct batch_job *job)
{
	const struct liveness *life;

	if (job->pid) {
		batch_child_stop(job);
		return;
	}
	/*
	 * The pid alone may belong to another process by now; adopt_judge() has just compared the
	 * start time and holds a pidfd.  Without a living supervisor, end the lease instead.
	 */
	life = adopt_judge(runner, job, clock_boot_ms());
	if (life && life->process == LIVENESS_LIVES && !life->is_orphaned)
		(void)!process_signal(
			job->owner.pid, life->pidfd, job->owner.uid, SIGTERM);
	else
		(void)!batch_child_cancel(&runner->launcher, &job->ticket, 1,
			runner->context.settings->care.grace_ms);
}
