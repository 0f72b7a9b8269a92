/*
 * The jobs of a batch that are no children of its runner: of one before, or left behind by a
 * supervisor that was killed.
 */
#include <signal.h>

#include "batch_runner.h"
#include "clock.h"

/* --- what became of them ----------------------------------------------------------- */

static struct batch_event end_of(const struct batch_job *told)
{
	struct batch_event event = BATCH_EVENT_OF(BATCH_OVER, told->number);

	event.at_ms = told->ended_ms;
	event.status = told->status;
	event.cause = told->cause;
	event.is_interrupted = told->state == BATCH_NEW;
	event.is_by_line = told->is_by_line;
	event.ticket = told->ticket;
	event.attempt = told->attempt;
	event.ran_ms = told->ran_ms;
	event.peak_mib = told->peak_mib;
	event.declared_mib = told->declared_mib;
	event.vram_mib = told->vram_mib;
	event.busy_mean = told->busy_mean;
	event.busy_peak = told->busy_peak;
	text_copy(event.text, sizeof(event.text), told->reason ? told->reason : "");
	return event;
}

/* The journal as it is now.  0 or a negative errno. */
static int load_again(const struct batch_runner *runner, struct batch_jobs *ret)
{
	autofree uint64_t *list = NULL;
	struct why why = WHY_NONE;
	size_t count, skipped;

	*ret = BATCH_JOBS_NONE;
	return batch_journal_load(&runner->journal, ret, &list, &count, &skipped, &why);
}

/* Its supervisor has got another lease meanwhile, which somebody it left behind may have. */
static bool has_another_lease(const struct batch_job *told, struct batch_job *job)
{
	if (told->state != BATCH_RUNNING ||
		strcmp(told->owner.token, job->owner.token) == 0)
		return false;
	job->owner = told->owner; /* looked at the next time */
	job->attempt = told->attempt;
	return true;
}

/* What the journal says of a job that is no child of ours and has ended. */
static void read_end(struct batch_runner *runner, struct batch_job *job)
{
	struct batch_jobs jobs;
	struct batch_event event;
	const struct batch_job *told;

	if (load_again(runner, &jobs) < 0)
		return; /* and once more in a moment */
	told = batch_jobs_find(&jobs, job->number);
	if (!told || (told->state == BATCH_RUNNING && !has_another_lease(told, job))) {
		batch_end_job(runner, job, BATCH_IS_LOST, 128 + SIGKILL, "");
	} else if (told->state != BATCH_RUNNING) {
		event = end_of(told);
		batch_take_event(runner, &event);
		if (event.is_interrupted)
			batch_plan_again(&runner->plan);
	}
	batch_jobs_release(&jobs);
}

void batch_look_after_adopted(struct batch_runner *runner)
{
	int64_t now_ms = clock_boot_ms();

	lives_begin(&runner->lives);
	for (size_t i = 0; i < runner->active_count;) {
		struct batch_job *job = batch_jobs_find(&runner->jobs, runner->active[i]);
		struct life *life;

		if (job->pid || job->state != BATCH_RUNNING) {
			i++;
			continue;
		}
		life = lives_judge(&runner->lives, &job->owner, true, now_ms);
		if (life && life_is_over(life)) {
			read_end(runner, job);
			if (job->state != BATCH_RUNNING) {
				batch_forget_active(runner, i);
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

/* --- finding and ending them ------------------------------------------------------- */

static bool is_at_work(
	struct batch_runner *runner, const struct batch_job *job, int64_t now_ms)
{
	const struct life *life = NULL;

	if (strcmp(job->boot, runner->context.dir.boot) == 0)
		life = lives_judge(&runner->lives, &job->owner, true, now_ms);
	return life && !life_is_over(life) && batch_note_active(runner, job) == 0;
}

/*
 * One that the journal had as running, and that is not any more.  It may have ended, and said
 * so, since the journal was read; or nobody was there to say so, for its supervisor died as
 * well: then it is run again.
 */
static void settle_dead(
	struct batch_runner *runner, struct batch_job *job, const struct batch_jobs *now)
{
	const struct batch_job *told = batch_jobs_find(now, job->number);
	struct batch_event event;

	if (told && told->state == BATCH_ENDED) {
		event = end_of(told);
		(void)!batch_jobs_apply(&runner->jobs, &event);
		job->is_of_before = true;
	} else if (!told || !has_another_lease(told, job) ||
		   !is_at_work(runner, job, clock_boot_ms())) {
		job->state = BATCH_NEW;
		job->ticket = 0;
	}
}

void batch_adopt(struct batch_runner *runner)
{
	struct batch_jobs now = BATCH_JOBS_NONE;
	int64_t now_ms = clock_boot_ms();
	bool has_dead = false;

	lives_begin(&runner->lives);
	for (size_t i = 0; i < runner->jobs.count; i++) {
		struct batch_job *job = &runner->jobs.all[i];

		job->is_of_before = true;
		if (job->state == BATCH_ENDED && job->cause == BATCH_NOT_RUN)
			batch_jobs_renew(job);
		job->is_dying =
			job->state == BATCH_RUNNING && !is_at_work(runner, job, now_ms);
		has_dead = has_dead || job->is_dying;
	}
	if (has_dead && load_again(runner, &now) < 0)
		now = BATCH_JOBS_NONE;
	for (size_t i = 0; has_dead && i < runner->jobs.count; i++) {
		if (runner->jobs.all[i].is_dying)
			settle_dead(runner, &runner->jobs.all[i], &now);
		runner->jobs.all[i].is_dying = false;
	}
	batch_jobs_release(&now);
	lives_end(&runner->lives);
}

void batch_stop_job(struct batch_runner *runner, struct batch_job *job)
{
	const struct life *life;

	if (job->pid) {
		batch_child_stop(job);
		return;
	}
	/* a number alone may be anybody's by now */
	life = lives_judge(&runner->lives, &job->owner, true, clock_boot_ms());
	if (life && life->process == LIFE_LIVES && life->pidfd >= 0)
		(void)process_signal(job->owner.pid, life->pidfd, SIGTERM);
	else
		(void)!batch_child_cancel(&runner->nursery, &job->ticket, 1,
			runner->context.settings->grace_ms);
}
