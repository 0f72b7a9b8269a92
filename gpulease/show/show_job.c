#include "accounting.h"
#include "json_members.h"
#include "parse.h"
#include "report.h"
#include "show_cells.h"
#include "show_history.h"
#include "show_job.h"
#include "show_queue.h"
#include "show_status.h"
#include "wait_reason.h"
#include "waiting_line.h"

/* The state of the printing.  ->line is the next line, without its label. */
struct sheet {
	const struct view *view;
	const struct job_view *job;
	const struct table_style *style;
	FILE *out;
	char words[1024];
	struct text line;
};

static void put_text(const struct sheet *sheet, const char *label, const char *text)
{
	if (text[0])
		line_print_labelled(label, text, sheet->style, sheet->out);
}

/* Prints the line, unless it is empty, and begins the next one. */
static void put_line(struct sheet *sheet, const char *label)
{
	if (sheet->line.used)
		put_text(sheet, label, sheet->words);
	sheet->line = TEXT_ON(sheet->words);
}

static const char *job_state(const struct job_view *job)
{
	if (job->waits)
		return "waiting";
	if (job->runs)
		return job->runs->is_lingering ? "lingering" : "running";
	return end_state_names[job->end_count ? history_state(job->ends) : END_UNKNOWN];
}

/* Returns the lease of the job on @gpu, or NULL. */
static const struct view_holder *lease_on(
	const struct view_gpu *gpu, const struct job_view *job)
{
	for (size_t i = 0; i < gpu->holder_count && job->runs; i++)
		if (gpu->holders[i].ticket == job->id)
			return &gpu->holders[i];
	return NULL;
}

/* Appends the GPUs that the job runs on, "0,3".  Returns how many there are. */
static unsigned add_gpus(const struct sheet *sheet, struct text *out)
{
	const struct view *view = sheet->view;
	unsigned count = 0;

	for (size_t i = 0; i < view->gpu_count; i++)
		if (lease_on(&view->gpus[i], sheet->job))
			text_addf(out, "%s%s", count++ ? "," : "",
				view_gpu_name(&view->gpus[i]).text);
	return count;
}

static void put_limit(struct sheet *sheet, int64_t limit_ms, int64_t ran_ms)
{
	if (limit_ms <= 0)
		return;
	report_add_span(limit_ms, &sheet->line);
	if (ran_ms >= 0) {
		text_add(&sheet->line, ", ");
		report_add_span(limit_ms - ran_ms, &sheet->line);
		text_add(&sheet->line, " left");
	}
	put_line(sheet, "limit");
}

/* Prints "10:24:33, 5m ago". */
static void put_moment(struct sheet *sheet, const char *label, int64_t age_ms)
{
	int64_t now_ms = sheet->view->real_ms;

	if (age_ms < 0)
		return;
	show_add_time(&sheet->line, now_ms - age_ms, now_ms);
	text_add(&sheet->line, ", ");
	report_add_span(age_ms, &sheet->line);
	text_add(&sheet->line, " ago");
	put_line(sheet, label);
}

/* --- a job that waits -------------------------------------------------------------- */

static void put_waiting(struct sheet *sheet)
{
	const struct view_job *job = sheet->job->waits;
	unsigned position = (unsigned)(job - sheet->view->jobs) + 1;

	text_addf(&sheet->line, "waiting, %u%s in the queue", position,
		ordinal_suffix(position));
	put_line(sheet, "state");
	put_text(sheet, "why", job->why);
	put_text(sheet, "user", job->user);
	put_text(sheet, "command", sheet->job->command);
	explain_need(&job->need, job->gpus, &sheet->line);
	put_line(sheet, "needs");
	if (job->priority)
		text_addf(&sheet->line, "%lld", (long long)job->priority);
	put_line(sheet, "priority");
	put_text(sheet, "after", job->after);
	put_text(sheet, "after ok", job->after_ok);
	put_moment(sheet, "queued", job->waits_ms);
	put_limit(sheet, job->limit_ms, -1);
}

/* --- a job that runs --------------------------------------------------------------- */

/* Prints how much of a GPU of the job is in use, by all jobs that share it. */
static void put_use(struct sheet *sheet, const struct view_gpu *gpu)
{
	char label[sizeof(struct gpu_name) + 8], used[GIB_TEXT_SIZE] = "?",
						 total[GIB_TEXT_SIZE] = "?";

	if (gpu->node) /* Slurm does not know it */
		return;
	(void)snprintf(label, sizeof(label), "GPU %s", view_gpu_name(gpu).text);
	if (gpu->used_mib != PROBE_MIB_UNKNOWN)
		format_gib(gpu->used_mib, used);
	if (gpu->total_mib)
		format_gib(gpu->total_mib, total);
	text_addf(&sheet->line, "%s/%sG in use", used, total);
	if (gpu->holder_count > 1)
		text_addf(&sheet->line, " by %zu jobs", gpu->holder_count);
	if (gpu->utilization >= 0)
		text_addf(&sheet->line, ", %d%% busy", gpu->utilization);
	put_line(sheet, label);
}

static void put_peak(
	struct sheet *sheet, uint64_t peak_mib, uint64_t declared_mib, bool is_over)
{
	if (!peak_mib)
		return;
	report_add_size(peak_mib, &sheet->line);
	if (declared_mib) {
		text_add(&sheet->line, " of ");
		report_add_size(declared_mib, &sheet->line);
		text_add(&sheet->line, is_over ? " declared, over" : " declared");
	}
	put_line(sheet, "peak");
}

static void put_running(struct sheet *sheet)
{
	const struct view_holder *job = sheet->job->runs;
	char words[512];
	struct text gpus = TEXT_ON(words);
	unsigned count = add_gpus(sheet, &gpus);

	text_addf(&sheet->line, "%s %s%s%s", job_state(sheet->job),
		count ? "on GPU " : "without a GPU", words,
		job->is_lingering ? ": it has ended, but processes that it left run"
				  : "");
	put_line(sheet, "state");
	put_text(sheet, "user", job->user);
	put_text(sheet, "command", sheet->job->command);
	put_text(sheet, "note", job->note);
	if (count)
		explain_need(&job->need, count, &sheet->line);
	put_line(sheet, "needs");
	put_moment(sheet, "started", job->age_ms);
	put_limit(sheet, job->limit_ms, job->age_ms);
	if (job->pid)
		text_addf(&sheet->line, "%u", job->pid);
	put_line(sheet, "pid");
	put_peak(sheet, job->peak_mib, job->need.mib, job->is_over_declared);
	for (size_t i = 0; i < sheet->view->gpu_count; i++)
		if (lease_on(&sheet->view->gpus[i], sheet->job))
			put_use(sheet, &sheet->view->gpus[i]);
}

/* --- attempts that have ended ------------------------------------------------------- */

/* Prints "failed, exit status 1, ran 5m29s". */
static void put_outcome(
	struct sheet *sheet, const char *label, const struct history_end *end)
{
	int64_t least, most;

	ended_add_state(end, &sheet->line);
	if (history_status(end) >= 0)
		text_addf(&sheet->line, ", exit status %d", history_status(end));
	if (ended_span_ms(end, &least, &most)) {
		text_add(&sheet->line, ", ran ");
		ended_add_ran(end, &sheet->line);
	}
	put_line(sheet, label);
}

static void put_ended(struct sheet *sheet)
{
	const struct history_end *end = sheet->job->ends;
	int64_t now_ms = sheet->view->real_ms;
	unsigned mean, peak;
	uint64_t gpu_ms = ended_gpu_ms(end, end->since_ms, end->alive_ms);

	put_outcome(sheet, "state", end);
	put_text(sheet, "user", end->user);
	put_text(sheet, "command", sheet->job->command);
	put_text(sheet, "on GPU", end->gpus);
	report_add_span(end->waited_ms, &sheet->line);
	put_line(sheet, "waited");
	show_add_time(&sheet->line, end->since_ms, now_ms);
	put_line(sheet, "started");
	put_moment(sheet, "ended", now_ms - end->gone_ms);
	if (gpu_ms)
		report_add_span((int64_t)gpu_ms, &sheet->line);
	put_line(sheet, "GPU time");
	put_peak(sheet, ended_peak_mib(end), end->vram_mib, false);
	if (ended_utilization(end, &mean, &peak))
		text_addf(&sheet->line, "%u%%, at most %u%%", mean, peak);
	put_line(sheet, "busy");
}

/* --- the sheet --------------------------------------------------------------------- */

static const char *job_name(const struct job_view *job)
{
	if (job->waits)
		return job->waits->name;
	if (job->runs)
		return job->runs->name;
	return job->end_count ? job->ends->name : "";
}

void show_job(const struct view *view, const struct job_view *job,
	const struct table_style *style, FILE *out)
{
	struct sheet sheet = { .view = view, .job = job, .style = style, .out = out };
	const char *name = job_name(job);
	uint32_t attempt = 0;
	size_t last = 0;

	sheet.line = TEXT_ON(sheet.words);
	text_addf(&sheet.line, name[0] ? "%llu '%s'" : "%llu",
		(unsigned long long)job->id, name);
	put_line(&sheet, "job");
	if (job->waits) {
		put_waiting(&sheet);
		attempt = job->waits->attempt;
	} else if (job->runs) {
		put_running(&sheet);
		attempt = job->runs->attempt;
	} else if (job->end_count) {
		put_ended(&sheet);
		attempt = job->ends->attempt;
		last = 1;
	} else {
		put_text(&sheet, "state",
			view->has_more_jobs ? "not known: too many jobs wait"
					    : "ended; how is not recorded");
	}
	put_text(&sheet, "log", job->log);
	if (attempt > 1)
		text_addf(&sheet.line, "%u", attempt);
	put_line(&sheet, "attempt");
	for (size_t i = job->end_count; i-- > last;) {
		char label[32];

		(void)snprintf(label, sizeof(label), "attempt %u", job->ends[i].attempt);
		put_outcome(&sheet, label, &job->ends[i]);
	}
}

/* --- JSON -------------------------------------------------------------------------- */

static void json_put_gpus(
	struct json *json, const struct view *view, const struct job_view *job)
{
	json_key(json, "gpus");
	json_begin_array(json);
	for (size_t i = 0; i < view->gpu_count; i++)
		if (lease_on(&view->gpus[i], job))
			json_unsigned(json, view->gpus[i].index);
	json_end(json);
	json_key(json, "uuids");
	json_begin_array(json);
	for (size_t i = 0; i < view->gpu_count; i++)
		if (lease_on(&view->gpus[i], job))
			json_text(json, view->gpus[i].uuid);
	json_end(json);
}

static void json_put_one(
	struct json *json, const struct view *view, const struct job_view *job)
{
	json_begin_object(json);
	member_number(json, "ticket", job->id);
	member_text(json, "state", job_state(job));
	json_put_text(json, "command", job->command);
	json_put_text(json, "log", job->log);
	json_key(json, "waiting");
	if (job->waits)
		json_put_job(json, view, job->waits);
	else
		json_null(json);
	json_key(json, "running");
	if (job->runs)
		json_put_lease(json, view, job->runs);
	else
		json_null(json);
	json_put_gpus(json, view, job);
	json_key(json, "ended");
	json_begin_array(json);
	for (size_t i = job->end_count; i-- > 0;)
		json_put_end(json, &job->ends[i]);
	json_end(json);
	json_end(json);
}

void show_jobs_json(const struct job_views *jobs, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "job", jobs->view.real_ms, jobs->view.directory);
	json_key(&json, "jobs");
	json_begin_array(&json);
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->all[i].is_known)
			json_put_one(&json, &jobs->view, &jobs->all[i]);
	json_end(&json);
	document_finish(&json);
}
