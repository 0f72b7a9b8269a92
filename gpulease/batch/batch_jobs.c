#include <errno.h>

#include "array.h"
#include "batch_jobs.h"

struct batch_job *batch_jobs_add(
	struct batch_jobs *jobs, uint64_t key, const char *name, const char *command)
{
	struct batch_job *grown =
		array_grow(jobs->all, sizeof(*jobs->all), jobs->count, &jobs->room);
	autofree char *own_name = strdup(name), *own_command = strdup(command);
	struct batch_job *job;

	if (grown)
		jobs->all = grown;
	if (!grown || !own_name || !own_command)
		return NULL;
	job = &jobs->all[jobs->count++];
	*job = (struct batch_job){ .number = jobs->count,
		.key = key,
		.name = own_name,
		.command = own_command,
		.busy_mean = -1,
		.busy_peak = -1,
		.fd = -1 };
	own_name = own_command = NULL;
	return job;
}

struct batch_job *batch_jobs_find(const struct batch_jobs *jobs, uint64_t number)
{
	return number >= 1 && number <= jobs->count ? &jobs->all[number - 1] : NULL;
}

void batch_jobs_release(struct batch_jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++) {
		free(jobs->all[i].name);
		free(jobs->all[i].command);
		free(jobs->all[i].reason);
	}
	free(jobs->all);
	*jobs = BATCH_JOBS_NONE;
}

bool batch_is_finished(const struct batch_job *job)
{
	return job->state == BATCH_ENDED && job->cause == BATCH_ITSELF &&
	       job->status == 0 && !job->is_dropped;
}

bool batch_is_failed(const struct batch_job *job)
{
	return job->state == BATCH_ENDED && !job->is_dropped &&
	       !(job->cause == BATCH_BY_CANCEL && job->is_by_line) &&
	       !batch_is_finished(job);
}

bool batch_is_open(const struct batch_job *job)
{
	if (!job->environment || job->state == BATCH_NEW || job->state == BATCH_IN_QUEUE)
		return true;
	return job->state == BATCH_ENDED &&
	       (!job->was_started || job->cause == BATCH_NOT_RUN);
}

/* --- sections and counts ----------------------------------------------------------- */

enum batch_section batch_section_of(const struct batch_job *job)
{
	if (job->state == BATCH_ENDED)
		return job->line || !job->is_from_earlier ? BATCH_SECTION_DONE
							  : BATCH_SECTION_NONE;
	if (job->state == BATCH_RUNNING)
		return job->is_between ? BATCH_SECTION_WAITING : BATCH_SECTION_RUNNING;
	return job->line ? BATCH_SECTION_WAITING : BATCH_SECTION_NONE;
}

static void jobs_count_ended(const struct batch_job *job, struct batch_counts *counts)
{
	if (job->is_dropped)
		counts->dropped++;
	else if (batch_is_finished(job))
		counts->finished++;
	else if (job->cause == BATCH_BY_CANCEL)
		counts->cancelled++;
	else
		counts->failed++;
}

struct batch_counts batch_count(const struct batch_jobs *jobs)
{
	struct batch_counts counts = { .all = 0 };

	for (size_t i = 0; i < jobs->count; i++) {
		enum batch_section section = batch_section_of(&jobs->all[i]);

		counts.all += section != BATCH_SECTION_NONE;
		counts.running += section == BATCH_SECTION_RUNNING;
		counts.waiting += section == BATCH_SECTION_WAITING;
		if (section == BATCH_SECTION_DONE)
			jobs_count_ended(&jobs->all[i], &counts);
	}
	return counts;
}

/* --- what events mean -------------------------------------------------------------- */

/*
 * The functions on_…() apply one kind of event.  They return 0 or a negative errno, as
 * batch_jobs_apply() does.
 */

/* Sets ->reason to a copy of @text, or to NULL for "".  Returns 0 or -ENOMEM. */
static int job_set_reason(struct batch_job *job, const char *text)
{
	char *reason = text[0] ? strdup(text) : NULL;

	if (text[0] && !reason)
		return -ENOMEM;
	free(job->reason);
	job->reason = reason;
	return 0;
}

static int on_seen(struct batch_jobs *jobs, const struct batch_event *event)
{
	struct batch_job *job;

	if (event->job != jobs->count + 1)
		return -EINVAL;
	job = batch_jobs_add(jobs, event->key, event->name, event->command);
	if (!job)
		return -ENOMEM;
	job->environment = event->environment;
	return 0;
}

static int jobs_add_to_list(void *arg, uint64_t number)
{
	struct batch_job *job = batch_jobs_find(arg, number);

	if (!job)
		return -ENOENT;
	job->is_in_list = true;
	return 0;
}

static int on_listed(struct batch_jobs *jobs, const struct batch_event *event)
{
	for (size_t i = 0; i < jobs->count; i++)
		jobs->all[i].is_in_list = false;
	return batch_each_number(event->jobs, event->jobs_size, jobs_add_to_list, jobs);
}

static int on_queued(struct batch_job *job, const struct batch_event *event)
{
	job->ticket = event->ticket;
	job->slurm_job = event->slurm_job;
	if (job->state != BATCH_RUNNING)
		job->state = BATCH_IN_QUEUE;
	return 0;
}

static int on_waiting(struct batch_job *job, const struct batch_event *event)
{
	return job->state == BATCH_ENDED ? -EINVAL : job_set_reason(job, event->text);
}

/* Forgets the end of @job, which is at work again or is to be run again. */
static void job_forget_end(struct batch_job *job)
{
	job->is_from_earlier = job->is_between = job->is_listed = false;
	job->ended_ms = job->ran_ms = 0;
	job->used_mib = job->peak_mib = 0;
	job->is_over = job->spans_run = false;
	job->status = 0;
	job->busy_mean = job->busy_peak = -1;
	job->cause = BATCH_ITSELF;
}

static int on_started(struct batch_job *job, const struct batch_event *event)
{
	job_forget_end(job);
	job->state = BATCH_RUNNING;
	job->was_started = true;
	job->is_recalled = false; /* the recall came too late */
	job->ticket = event->ticket;
	job->slurm_job = event->slurm_job;
	job->environment = event->environment;
	job->owner = event->owner;
	text_copy(job->boot, sizeof(job->boot), event->boot);
	job->attempt = event->attempt;
	text_copy(job->gpus, sizeof(job->gpus), event->gpus);
	job->started_ms = event->at_ms;
	job->waited_ms = event->waited_ms;
	job->limit_ms = event->limit_ms;
	job->declared_mib = event->declared_mib;
	job->vram_mib = event->vram_mib;
	return job_set_reason(job, "");
}

static int on_memory(struct batch_job *job, const struct batch_event *event)
{
	job->used_mib = event->used_mib;
	job->is_over = job->is_over || event->kind == BATCH_EXCESS;
	if (job->peak_mib < event->peak_mib)
		job->peak_mib = event->peak_mib;
	return 0;
}

static int on_attempt(struct batch_job *job, const struct batch_event *event)
{
	if (job->state == BATCH_ENDED)
		return -EINVAL;
	job->state = BATCH_RUNNING;
	job->is_between = true;
	job->gpus[0] = '\0'; /* another job may have them by now */
	job->cause = event->cause;
	job->status = event->status;
	job->oom_count += event->cause == BATCH_BY_OOM;
	job->fail_count += event->cause == BATCH_ITSELF && event->status != 0;
	if (event->next_mib)
		job->vram_mib = event->next_mib;
	return job_set_reason(job, "");
}

uint64_t batch_job_id(const struct batch_job *job)
{
	return job->slurm_job ? job->slurm_job : job->ticket;
}

void batch_jobs_return(struct batch_job *job)
{
	job->state = BATCH_NEW;
	job->ticket = job->slurm_job = 0;
}

/*
 * Makes @job new.  The counts of its attempts and the memory that they have shown to be needed
 * stay.
 */
static int job_begin_again(struct batch_job *job)
{
	job_forget_end(job);
	batch_jobs_return(job);
	job->owner = (struct owner){ .pid = 0 };
	job->boot[0] = job->gpus[0] = '\0';
	job->attempt = 0;
	job->started_ms = job->waited_ms = 0;
	return job_set_reason(job, "");
}

void batch_jobs_renew(struct batch_job *job)
{
	job->is_dropped = job->is_by_line = job->is_cancelling = false;
	(void)job_begin_again(job);
}

static int on_over(struct batch_job *job, const struct batch_event *event)
{
	if (event->is_interrupted)
		return job_begin_again(job);
	job->is_from_earlier = job->is_between = job->is_listed = false;
	job->state = BATCH_ENDED;
	job->ended_ms = event->at_ms;
	job->status = event->status;
	job->cause = event->cause;
	job->is_by_line = event->is_by_line || job->is_cancelling;
	job->is_dropped = event->cause == BATCH_NOT_RUN && event->status == 0;
	job->ran_ms = event->ran_ms;
	job->peak_mib = event->peak_mib ? event->peak_mib : job->peak_mib;
	job->spans_run = event->spans_run;
	job->busy_mean = event->busy_mean;
	job->busy_peak = event->busy_peak;
	return job_set_reason(job, event->text);
}

int batch_jobs_apply(struct batch_jobs *jobs, const struct batch_event *event)
{
	static int (*const on_jobs[BATCH_KINDS])(
		struct batch_jobs *, const struct batch_event *) = {
		[BATCH_SEEN] = on_seen,
		[BATCH_LISTED] = on_listed,
	};
	static int (*const on_job[BATCH_KINDS])(
		struct batch_job *, const struct batch_event *) = {
		[BATCH_STARTED] = on_started,
		[BATCH_ATTEMPT] = on_attempt,
		[BATCH_OVER] = on_over,
		[BATCH_QUEUED] = on_queued,
		[BATCH_WAITING] = on_waiting,
		[BATCH_MEMORY] = on_memory,
		[BATCH_EXCESS] = on_memory,
	};
	struct batch_job *job;

	if (on_jobs[event->kind])
		return on_jobs[event->kind](jobs, event);
	if (!on_job[event->kind])
		return 0;
	job = batch_jobs_find(jobs, event->job);
	return job ? on_job[event->kind](job, event) : -ENOENT;
}
