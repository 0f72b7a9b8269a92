#include <errno.h>
#include <sys/stat.h>

#include "array.h"
#include "clock.h"
#include "job_view.h"
#include "joblog.h"
#include "namespaces.h"
#include "outcome.h"
#include "proc.h"
#include "process_info.h"
#include "rights.h"
#include "view_ended.h"

enum { CLOCK_SET_MS = 60 * 1000 }; /* the real-time clock may have been set by so much */

/* --- which jobs -------------------------------------------------------------------- */

/*
 * Adds the job that @number means.  If it is a job of this boot, its ticket names the user and the
 * time of its arrival.  Returns 0 or a negative errno.
 */
static int jobs_add(struct job_views *jobs, const struct statedir *dir,
	struct ticket_file *tickets, uint64_t end, uint64_t number)
{
	struct job_view job = { .id = number };
	struct ticket ticket;
	struct job_view *all;
	int r = outcome_find_job(tickets, end, number, &job.id);

	if (r < 0)
		return r;
	job.is_known = r == 0;
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->all[i].id == job.id)
			return 0;
	if (job.is_known && ticket_read(tickets, job.id, &ticket) == TICKET_RECORD &&
		strcmp(ticket.boot, dir->boot) == 0) {
		job.uid = ticket.owner.uid;
		job.since_ms = clock_real_ms() - (clock_boot_ms() - ticket.since_ms);
	}
	all = array_grow(jobs->all, sizeof(*all), jobs->count, &jobs->room);
	if (!all)
		return -ENOMEM;
	jobs->all = all;
	all[jobs->count++] = job;
	return 0;
}

static int jobs_find(
	struct job_views *jobs, const struct statedir *dir, struct operand_walk *walk)
{
	struct ticket_file tickets = TICKET_FILE_NONE;
	struct operand operand;
	uint64_t end = 0;
	int r = ticket_open_to_read(dir->fd, &tickets);

	if (r == 0)
		r = ticket_end(&tickets, &end);
	if (r == -ENOENT) /* there has been no job yet */
		r = 0;
	while (r == 0 && operand_next(walk, &operand, NULL) == 0)
		r = jobs_add(jobs, dir, &tickets, end, operand.first);
	ticket_release(&tickets);
	return r;
}

/* Finds the job among those that wait or run. */
static void job_find_in_view(struct job_view *job, const struct view *view)
{
	for (size_t i = 0; i < view->job_count; i++)
		if (view->jobs[i].ticket == job->id)
			job->waits = &view->jobs[i];
	for (size_t i = 0; i < view->gpuless_count; i++)
		if (view->gpuless[i].ticket == job->id)
			job->runs = &view->gpuless[i];
	for (size_t i = 0; i < view->gpu_count; i++)
		for (size_t k = 0; k < view->gpus[i].holder_count; k++)
			if (view->gpus[i].holders[k].ticket == job->id)
				job->runs = &view->gpus[i].holders[k];
	/* what an earlier attempt has left may linger while the next one waits */
	if (job->runs && job->waits && job->runs->attempt >= job->waits->attempt)
		job->waits = NULL;
	else if (job->waits)
		job->runs = NULL;
}

/* --- attempts that have ended ------------------------------------------------------- */

struct end_taker {
	struct view_taker taker;
	struct job_views *jobs;
};

/*
 * Whether @end is an attempt of @job.  An earlier ticket file may have had another job with this
 * id.  The ends come in order, the latest first, so the numbers of the attempts must fall.
 */
static bool job_has_end(const struct job_view *job, const struct history_end *end)
{
	uint32_t attempt = end->attempt ? end->attempt : 1, before = UINT32_MAX;

	if (end->ticket != job->id || end->gone_ms + CLOCK_SET_MS < job->since_ms)
		return false;
	if (job->end_count)
		before = job->ends[job->end_count - 1].attempt;
	else if (job->runs)
		before = job->runs->attempt;
	else if (job->waits)
		before = job->waits->attempt;
	return attempt < before;
}

static int take_end(
	struct view_taker *taker, const struct history_end *end, bool is_running)
{
	struct job_views *jobs = ((struct end_taker *)taker)->jobs;

	(void)is_running;
	for (size_t i = 0; i < jobs->count; i++) {
		struct job_view *job = &jobs->all[i];
		struct history_end *ends;

		if (!job_has_end(job, end))
			continue;
		ends = array_grow(
			job->ends, sizeof(*ends), job->end_count, &job->end_room);
		if (!ends)
			return -ENOMEM;
		job->ends = ends;
		ends[job->end_count] = *end;
		ends[job->end_count].attempt = end->attempt ? end->attempt : 1;
		view_ended_name_users(&ends[job->end_count++]);
		job->is_known = true;
	}
	return 0;
}

/* --- commands and logs -------------------------------------------------------------- */

/* Copies the command from the record, and what does not fit into a record from /proc. */
static void job_fill_command(struct job_view *job)
{
	const char *recorded = job->end_count ? job->ends[0].command : "";
	uint32_t pid = 0;

	if (job->waits) {
		recorded = job->waits->command;
		pid = job->waits->pid;
	} else if (job->runs) {
		recorded = job->runs->command;
		pid = job->runs->pid;
	}
	text_copy(job->command, sizeof(job->command), recorded);
	process_info_complete(pid, job->command, sizeof(job->command));
}

/* Whether @path is a file that was written since the job came. */
static bool is_log_of(const struct job_view *job, const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	       (int64_t)st.st_mtime * 1000 + CLOCK_SET_MS > job->since_ms;
}

/*
 * Finds the file with the job's output: what its command has as standard output, else the log of
 * --submit.  Works with the user's rights, so only root finds the log of another user.
 */
static void job_find_log(struct job_view *job, const struct context *context)
{
	ssize_t size = -1;
	char link[PROC_PATH_SIZE];

	rights_as_user_begin();
	if (job->runs && job->runs->pid && proc_path(job->runs->pid, "fd/1", link) == 0)
		size = readlink(link, job->log, sizeof(job->log) - 1);
	job->log[size > 0 ? size : 0] = '\0';
	if (job->log[0] != '/' || !is_log_of(job, job->log))
		job->log[0] = '\0';
	if (!job->log[0] && job->uid == namespaces_own_user() &&
		(joblog_path(context, job->id, job->log, sizeof(job->log)) < 0 ||
			!is_log_of(job, job->log)))
		job->log[0] = '\0';
	rights_as_user_end();
}

/* --- all of it --------------------------------------------------------------------- */

static int jobs_read(struct job_views *jobs, const struct context *context,
	struct operand_walk *walk, struct why *why)
{
	struct end_taker ends = { .taker.take = take_end, .jobs = jobs };
	int r = jobs_find(jobs, &context->dir, walk);

	if (r < 0)
		return r;
	r = view_take(context, &jobs->view, why);
	for (size_t i = 0; i < jobs->count && r == 0; i++)
		job_find_in_view(&jobs->all[i], &jobs->view);
	if (r == 0)
		r = view_each_ended(context, &ends.taker, why);
	for (size_t i = 0; i < jobs->count && r == 0; i++) {
		struct job_view *job = &jobs->all[i];

		if (job->end_count) {
			const struct history_end *first = &job->ends[job->end_count - 1];

			job->uid = first->uid;
			if (!job->since_ms && first->since_ms)
				job->since_ms =
					first->since_ms - max_i64(0, first->waited_ms);
		}
		job_fill_command(job);
		job_find_log(job, context);
	}
	return r;
}

int job_views_take(const struct context *context, struct operand_walk *walk,
	struct job_views *ret, struct why *why)
{
	struct job_views jobs = JOB_VIEWS_NONE;
	int r = jobs_read(&jobs, context, walk, why);

	if (r < 0) {
		job_views_release(&jobs);
		if (!why->text[0])
			why_set(why, "cannot read the jobs: %s", strerror(-r));
		return r;
	}
	*ret = jobs;
	return 0;
}

void job_views_release(struct job_views *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		free(jobs->all[i].ends);
	free(jobs->all);
	view_release(&jobs->view);
	*jobs = JOB_VIEWS_NONE;
}
