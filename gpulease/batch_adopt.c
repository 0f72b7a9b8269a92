/*
 * The jobs of a batch that are no children of its runner: of one before, or left behind by a
 * supervisor that was killed.
 */
#include <signal.h>

#include "batch_runner.h"
#include "clock.h"

enum {
	TELL_MS = 1000, /* for the new parent of a command to reap it */
	TELL_STEP_MS = 10,
};

/* --- what became of them ----------------------------------------------------------- */

/*
 * An event of one that nobody else tells us of: of an earlier run, and at work.  Its other
 * attempts, their GPUs and its end are told by the journal alone.
 */
static struct batch_job *adopted_job(
	const struct batch_runner *runner, const struct batch_event *event)
{
	struct batch_job *job = batch_jobs_find(&runner->jobs, event->job);

	return job && job->is_adopted && job->state == BATCH_RUNNING ? job : NULL;
}

static void hear(void *arg, const struct batch_event *event)
{
	struct batch_runner *runner = arg;
	const struct batch_job *job = adopted_job(runner, event);
	struct batch_event ours = *event;

	if (!job)
		return;
	/* there was no way to tell it that it is its line that cancels it */
	if (event->kind == BATCH_OVER && event->cause == BATCH_BY_CANCEL &&
		!event->is_interrupted && !event->is_by_line && job->is_cancelling) {
		ours.is_by_line = true;
		(void)!batch_happened(runner, &ours);
		return;
	}
	batch_take_event(runner, event);
	if (job->state == BATCH_NEW)
		batch_plan_again(&runner->plan);
}

/* The last event of a job, for one whose supervisor may have told the journal alone of it. */
static void keep_last(void *arg, const struct batch_event *event)
{
	struct batch_event *last = arg;

	if (event->job == last->job &&
		(event->kind == BATCH_STARTED || event->kind == BATCH_ATTEMPT ||
			event->kind == BATCH_OVER))
		*last = *event;
}

/* Takes what the journal says of our own child, which may be more than it has told us. */
static int read_last(struct batch_runner *runner, const struct batch_job *job)
{
	struct batch_journal all = runner->journal;
	struct batch_event last = BATCH_EVENT_OF(BATCH_EVENT_NONE, job->number);
	int r;

	all.read = 0;
	r = batch_journal_read_on(&all, keep_last, &last);
	if (r == 0 && (last.kind == BATCH_OVER ||
			      (last.kind == BATCH_STARTED &&
				      strcmp(last.owner.token, job->owner.token) != 0)))
		batch_take_event(runner, &last);
	return r;
}

/*
 * For a job of which no process is known to live.  The journal may have its end, or another lease
 * that it has got meanwhile.  Else only this runner has seen the end: notes it with @status; -1:
 * not known.
 */
static void read_end(struct batch_runner *runner, struct batch_job *job, int status)
{
	char token[TOKEN_SIZE];
	int r;

	text_copy(token, sizeof(token), job->owner.token);
	r = job->is_adopted ? batch_journal_read_on(&runner->journal, hear, runner)
			    : read_last(runner, job);
	if (r < 0 || job->state != BATCH_RUNNING || strcmp(token, job->owner.token) != 0)
		return;
	if (status < 0)
		batch_end_job(runner, job, BATCH_IS_LOST, 128 + SIGKILL, "");
	else
		batch_end_job(runner, job, BATCH_ITSELF, status, "");
}

/* --- watching them ----------------------------------------------------------------- */

/*
 * The command that the job's supervisor has started, by the ticket of the attempt: it may run on
 * after the supervisor is dead.  .pid 0: none is known.
 */
static struct command find_command(
	const struct batch_runner *runner, const struct batch_job *job)
{
	struct ticket_file file = TICKET_FILE_NONE;
	struct command command = COMMAND_NONE;
	struct ticket ticket;
	int kind;

	if (!job->ticket || ticket_open_to_read(runner->context.dir.fd, &file) < 0)
		return command;
	kind = ticket_read(&file, job->ticket, &ticket);
	if (kind == TICKET_RECORD && ticket.latest)
		kind = ticket_read(&file, ticket.latest, &ticket);
	if (kind == TICKET_RECORD && strcmp(ticket.owner.token, job->owner.token) == 0)
		command = ticket.runs;
	ticket_release(&file);
	return command;
}

/* Judges the life of the job: of its supervisor, then of its command.  NULL: no memory. */
static struct life *judge(
	struct batch_runner *runner, const struct batch_job *job, int64_t now_ms)
{
	struct life *life = lives_judge(&runner->lives, &job->owner, true, now_ms);
	struct command command;

	if (!life || life->process != LIFE_ENDED || life->is_orphaned)
		return life;
	command = find_command(runner, job);
	return lives_judge_job(&runner->lives, &job->owner, &command, now_ms);
}

/* Its process has given its lease back: it is between two attempts, or about to end. */
static bool is_without_lease(const struct life *life)
{
	return life->fifo == LIFE_ENDED && !life->is_orphaned && !life_is_over(life);
}

/* Whether the status of a command that outlived its supervisor may be known in a moment. */
static bool is_to_tell(const struct life *life, int64_t now_ms)
{
	return life->is_orphaned && life_may_tell(life) &&
	       now_ms - life->over_ms < TELL_MS;
}

static void look_after(struct batch_runner *runner, struct batch_job *job, int64_t now_ms)
{
	struct life *life = judge(runner, job, now_ms);

	/* where reading fails it is done again in a moment */
	if (life && life_is_over(life) && is_to_tell(life, now_ms))
		watch_until(&runner->watch, now_ms + TELL_STEP_MS);
	else if (life && life_is_over(life))
		read_end(runner, job, life->is_orphaned ? life->status : -1);
	else if (life && is_without_lease(life))
		(void)!batch_journal_read_on(&runner->journal, hear, runner);
	if (job->state != BATCH_RUNNING)
		return;
	life = judge(runner, job, now_ms);
	/* nothing tells when a new attempt is in the journal */
	if (!life || life->unwatchable_ms || life_is_over(life) || is_without_lease(life))
		watch_until(&runner->watch, now_ms + 1000);
	if (life && (watch_add(&runner->watch, life->pidfd, POLLIN) < 0 ||
			    watch_add(&runner->watch, life->fifo_fd, 0) < 0))
		watch_until(&runner->watch, now_ms + 1000);
}

void batch_look_after_adopted(struct batch_runner *runner)
{
	int64_t now_ms = clock_boot_ms();

	lives_begin(&runner->lives);
	for (size_t i = 0; i < runner->active_count; i++) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, runner->active[i]);

		if (!job->pid && job->state == BATCH_RUNNING)
			look_after(runner, job, now_ms);
	}
	/* what was read for one may have been the end of another */
	for (size_t i = 0; i < runner->active_count;) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, runner->active[i]);

		if (job->pid || job->state == BATCH_RUNNING) {
			i++;
			continue;
		}
		job->is_adopted = false;
		batch_forget_active(runner, i);
	}
	lives_end(&runner->lives);
}

/* --- finding and ending them ------------------------------------------------------- */

static bool is_at_work(
	struct batch_runner *runner, const struct batch_job *job, int64_t now_ms)
{
	const struct life *life = NULL;

	if (strcmp(job->boot, runner->context.dir.boot) == 0)
		life = judge(runner, job, now_ms);
	return life && !life_is_over(life) && batch_note_active(runner, job) == 0;
}

/* Something has happened since the journal was read, before anybody is told of anything. */
static void learn(void *arg, const struct batch_event *event)
{
	struct batch_runner *runner = arg;
	struct batch_job *job = adopted_job(runner, event);

	if (!job)
		return;
	(void)!batch_jobs_apply(&runner->jobs, event);
	job->is_of_before = true;
}

/*
 * One that the journal had as running, and that was not any more.  It may have ended meanwhile,
 * and said so, or have got another lease; or nobody was there to say so, for its supervisor died
 * as well: then it is run again.
 */
static void settle_dead(struct batch_runner *runner, struct batch_job *job)
{
	job->is_dying = false;
	if (job->state == BATCH_RUNNING && is_at_work(runner, job, clock_boot_ms()))
		return;
	job->is_adopted = false;
	if (job->state == BATCH_ENDED)
		return;
	job->state = BATCH_NEW;
	job->ticket = 0;
}

void batch_adopt(struct batch_runner *runner)
{
	int64_t now_ms = clock_boot_ms();
	bool has_dead = false;

	lives_begin(&runner->lives);
	for (size_t i = 0; i < runner->jobs.count; i++) {
		struct batch_job *job = &runner->jobs.all[i];

		job->is_of_before = true;
		if (job->state == BATCH_ENDED && job->cause == BATCH_NOT_RUN)
			batch_jobs_renew(job);
		job->is_adopted = job->state == BATCH_RUNNING;
		job->is_dying = job->is_adopted && !is_at_work(runner, job, now_ms);
		has_dead = has_dead || job->is_dying;
	}
	/* what cannot be read now is as if nobody had seen it */
	if (has_dead)
		(void)!batch_journal_read_on(&runner->journal, learn, runner);
	for (size_t i = 0; i < runner->jobs.count; i++)
		if (runner->jobs.all[i].is_dying)
			settle_dead(runner, &runner->jobs.all[i]);
	lives_end(&runner->lives);
}

void batch_stop_job(struct batch_runner *runner, struct batch_job *job)
{
	const struct life *life;

	if (job->pid) {
		batch_child_stop(job);
		return;
	}
	/* a number alone may be another process's by now: its start time was compared just now */
	life = judge(runner, job, clock_boot_ms());
	if (life && life->process == LIFE_LIVES && !life->is_orphaned)
		(void)!process_signal(
			job->owner.pid, life->pidfd, job->owner.uid, SIGTERM);
	else
		(void)!batch_child_cancel(&runner->nursery, &job->ticket, 1,
			runner->context.settings->grace_ms);
}
