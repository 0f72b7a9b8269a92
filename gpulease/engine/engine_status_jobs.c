/*
 * --status ID of a cluster: all that Slurm knows of some jobs.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "array.h"
#include "clock.h"
#include "cluster_ended.h"
#include "cluster_view.h"
#include "diag.h"
#include "engine_look.h"
#include "engine_state.h"
#include "exitcodes.h"
#include "operands.h"
#include "outcome.h"
#include "show_job.h"
#include "slurm_ask.h"
#include "terminal.h"
#include "view_ended.h"

static const int64_t PERIOD_MS = INT64_C(30) * 24 * 3600 * 1000;

/* --- which jobs -------------------------------------------------------------------- */

/* Makes an entry for each operand.  Returns 0, or an exit status after a message. */
static int read_operands(const struct settings *settings, struct job_views *jobs)
{
	struct operand_walk walk = OPERAND_WALK(
		settings->verb.operands, settings->verb.operand_count, OPERAND_JOB);
	struct why why = WHY_NONE;
	struct operand operand;
	int r;

	while ((r = operand_next(&walk, &operand, &why)) == 0) {
		struct job_view *all =
			array_grow(jobs->all, sizeof(*all), jobs->count, &jobs->room);

		if (!all) {
			r = -ENOMEM;
			break;
		}
		jobs->all = all;
		memset(&all[jobs->count], 0, sizeof(*all));
		all[jobs->count++].id = operand.first;
	}
	if (r < 0)
		diag("%s", why.text[0] ? why.text : strerror(-r));
	return r < 0 ? EXIT_MISUSE : 0;
}

/* --- what is known of them --------------------------------------------------------- */

static const struct view_holder *find_lease(const struct view *view, uint64_t id)
{
	for (size_t i = 0; i < view->gpu_count; i++)
		for (size_t at = 0; at < view->gpus[i].holder_count; at++)
			if (view->gpus[i].holders[at].ticket == id)
				return &view->gpus[i].holders[at];
	for (size_t i = 0; i < view->gpuless_count; i++)
		if (view->gpuless[i].ticket == id)
			return &view->gpuless[i];
	return NULL;
}

static void find_in_view(
	const struct view *view, const struct cluster_jobs *live, struct job_view *job)
{
	const struct cluster_job *known = cluster_jobs_find(live, job->id);

	job->runs = find_lease(view, job->id);
	for (size_t i = 0; i < view->job_count && !job->runs && !job->waits; i++)
		if (view->jobs[i].ticket == job->id)
			job->waits = &view->jobs[i];
	job->is_known = job->runs || job->waits;
	job->uid = known ? known->uid : 0;
	if (job->is_known)
		text_copy(job->command, sizeof(job->command),
			job->runs ? job->runs->command : job->waits->command);
}

/* Adds an attempt that has ended; those before it have been added. */
static int add_end(struct job_view *job, const struct history_end *end)
{
	struct history_end *ends =
		array_grow(job->ends, sizeof(*ends), job->end_count, &job->end_room);

	if (!ends)
		return -ENOMEM;
	job->ends = ends;
	memmove(&ends[1], ends, job->end_count++ * sizeof(*ends));
	ends[0] = *end;
	job->uid = end->uid;
	view_ended_name_users(&ends[0]);
	job->is_known = true;
	if (!job->command[0])
		text_copy(job->command, sizeof(job->command), end->command);
	return 0;
}

static int add_accounted(const struct cluster_ends *ends, struct job_views *jobs)
{
	int r = 0;

	for (size_t i = 0; i < ends->count && r == 0; i++)
		for (size_t at = 0; at < jobs->count && r == 0; at++)
			if (jobs->all[at].id == ends->list[i].end.ticket &&
				ends->list[i].is_over)
				r = add_end(&jobs->all[at], &ends->list[i].end);
	return r;
}

/* Describes the last attempt as squeue does; only the accounting knows by whom it was cancelled. */
static void replace_end(struct job_view *job, struct history_end *end)
{
	view_ended_name_users(end);
	text_copy(end->by, sizeof(end->by), job->ends[0].by);
	job->ends[0] = *end;
	if (!job->command[0])
		text_copy(job->command, sizeof(job->command), end->command);
}

/* The accounting lags, and has parts of what squeue still knows: that is later, or fuller. */
static int add_remembered(const struct cluster_jobs *ended, struct job_views *jobs)
{
	int r = 0;

	for (size_t at = 0; at < jobs->count && r == 0; at++) {
		struct job_view *job = &jobs->all[at];
		const struct cluster_job *last = cluster_jobs_find(ended, job->id);
		struct history_end end;

		if (!last || last->state->phase != SLURM_ENDED)
			continue;
		cluster_end_of_job(last, &end);
		if (!job->end_count || job->ends[0].since_ms < end.since_ms)
			r = add_end(job, &end);
		else if (job->ends[0].since_ms == end.since_ms)
			replace_end(job, &end);
	}
	return r;
}

/* Whether more can be known of the job than that it waits or runs. */
static bool may_have_ended(const struct job_view *job)
{
	uint32_t attempt = job->runs    ? job->runs->attempt
			   : job->waits ? job->waits->attempt
					: 0;

	return attempt != 1;
}

/* Writes the ids of the jobs of which attempts may have ended, with commas between them. */
static int list_ended(const struct job_views *jobs, char **ret)
{
	size_t size = 0, count = 0;
	FILE *ids = open_memstream(ret, &size);

	if (!ids)
		return -errno;
	for (size_t i = 0; i < jobs->count; i++)
		if (may_have_ended(&jobs->all[i]))
			(void)fprintf(ids, "%s%llu", count++ ? "," : "",
				(unsigned long long)jobs->all[i].id);
	return fclose(ids) != 0 ? -errno : 0;
}

/* Finds the attempts that have ended.  Returns 0, or an exit status after a message. */
static int find_ended(struct job_views *jobs, const char *ids)
{
	const struct ended_question question = {
		.from_ms = clock_real_ms() - PERIOD_MS,
		.until_ms = INT64_MAX,
		.ids = ids,
		.deadline_ms = SLURM_DEADLINE_MS,
	};
	struct cluster_jobs remembered;
	struct cluster_ends ends;
	int r = cluster_jobs_ask(ids, &remembered);

	if (r != 0)
		return r;
	r = cluster_ends_ask(&question, &ends);
	if (r == 0) {
		int fault = add_accounted(&ends, jobs);

		if (fault == 0)
			fault = add_remembered(&remembered, jobs);
		cluster_ends_release(&ends);
		if (fault < 0)
			diag("%s", strerror(-fault));
		r = fault < 0 ? EXIT_MISUSE : 0;
	}
	cluster_jobs_release(&remembered);
	return r;
}

/* Only a job of this user has a log: that of --submit. */
static void find_log(struct job_view *job)
{
	if (!job->is_known || job->uid != getuid())
		return;
	if (engine_state_log(job->id, job->log) != 0 || access(job->log, R_OK) < 0)
		job->log[0] = '\0';
}

/* --- all of it --------------------------------------------------------------------- */

static int show_jobs(const struct settings *settings, struct job_views *jobs)
{
	struct table_style style = terminal_style();
	struct why why = WHY_NONE;
	bool has_printed = false;
	int status = EXIT_DONE;

	for (size_t i = 0; i < jobs->count; i++)
		find_log(&jobs->all[i]);
	if (settings->output.json)
		show_jobs_json(jobs, stdout);
	for (size_t i = 0; i < jobs->count; i++) {
		if (!jobs->all[i].is_known) {
			outcome_explain_no_job(jobs->all[i].id, &why);
			diag("%s", why.text);
			status = EXIT_NOT_DONE;
		} else if (!settings->output.json) {
			if (has_printed)
				(void)putchar('\n');
			show_job(&jobs->view, &jobs->all[i], &style, stdout);
			has_printed = true;
		}
	}
	return status;
}

int engine_status_jobs(const struct settings *settings)
{
	struct job_views jobs = JOB_VIEWS_NONE;
	struct cluster cluster = CLUSTER_NONE;
	autofree char *ids = NULL;
	int r = read_operands(settings, &jobs);

	if (r == 0)
		r = cluster_ask(false, &cluster);
	if (r == 0) {
		jobs.view = cluster.view;
		cluster.view = VIEW_NONE;
		for (size_t i = 0; i < jobs.count; i++)
			find_in_view(&jobs.view, &cluster.jobs, &jobs.all[i]);
		r = list_ended(&jobs, &ids);
		if (r < 0)
			diag("%s", strerror(-r));
		r = r < 0 ? EXIT_MISUSE : ids[0] ? find_ended(&jobs, ids) : 0;
	}
	if (r == 0)
		r = show_jobs(settings, &jobs);
	job_views_release(&jobs);
	cluster_release(&cluster);
	return r;
}
