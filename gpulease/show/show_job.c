#include <stdarg.h>

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

/* The lines that are being printed. */
struct sheet {
	const struct view *view;
	const struct job_view *job;
	const struct table_style *style;
	FILE *out;
};

static void put_text(const struct sheet *sheet, const char *label, const char *text)
{
	if (text[0])
		line_print_labelled(label, text, sheet->style, sheet->out);
}

static void putf(const struct sheet *sheet, const char *label, const char *format, ...)
	PRINTF_LIKE(3, 4);
static void putf(const struct sheet *sheet, const char *label, const char *format, ...)
{
	char words[512];
	va_list args;

	va_start(args, format);
	if (vsnprintf(words, sizeof(words), format, args) >= 0)
		put_text(sheet, label, words);
	va_end(args);
}

static const char *job_state(const struct job_view *job)
{
	if (job->waits)
		return "waiting";
	if (job->runs)
		return job->runs->is_lingering ? "lingering" : "running";
	return end_state_names[job->end_count ? history_state(job->ends) : END_UNKNOWN];
}

/* Whether the job has a lease on @gpu; then *@ret is that. */
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

static void put_limit(const struct sheet *sheet, int64_t limit_ms, int64_t ran_ms)
{
	char limit[DURATION_SIZE], left[DURATION_SIZE];

	if (limit_ms <= 0)
		return;
	format_duration(limit_ms, limit);
	format_duration(limit_ms - ran_ms, left);
	if (ran_ms >= 0)
		putf(sheet, "limit", "%s, %s left", limit, left);
	else
		put_text(sheet, "limit", limit);
}

/* "10:24:33, 5m ago" */
static void put_moment(const struct sheet *sheet, const char *label, int64_t age_ms)
{
	int64_t now_ms = sheet->view->real_ms;
	char words[64], age[DURATION_SIZE];
	struct text text = TEXT_ON(words);

	if (age_ms < 0)
		return;
	show_add_time(&text, now_ms - age_ms, now_ms);
	format_duration(age_ms, age);
	putf(sheet, label, "%s, %s ago", words, age);
}

/* --- a job that waits -------------------------------------------------------------- */

static void put_waiting(const struct sheet *sheet)
{
	const struct view_job *job = sheet->job->waits;
	unsigned position = (unsigned)(job - sheet->view->jobs) + 1;
	char words[128];
	struct text needs = TEXT_ON(words);

	putf(sheet, "state", "waiting, %u%s in the queue", position,
		ordinal_suffix(position));
	put_text(sheet, "why", job->why);
	put_text(sheet, "user", job->user);
	put_text(sheet, "command", sheet->job->command);
	explain_need(&job->need, job->gpus, &needs);
	put_text(sheet, "needs", words);
	if (job->priority)
		putf(sheet, "priority", "%lld", (long long)job->priority);
	put_text(sheet, "after", job->after);
	put_text(sheet, "after ok", job->after_ok);
	put_moment(sheet, "queued", job->waits_ms);
	put_limit(sheet, job->limit_ms, -1);
}

/* --- a job that runs --------------------------------------------------------------- */

/* What a GPU of the job has in use; jobs that share it are counted together. */
static void put_use(const struct sheet *sheet, const struct view_gpu *gpu)
{
	char label[32], used[GIB_TEXT_SIZE] = "?", total[GIB_TEXT_SIZE] = "?";
	char words[128];
	struct text text = TEXT_ON(words);

	(void)snprintf(label, sizeof(label), "GPU %s", view_gpu_name(gpu).text);
	if (gpu->used_mib != PROBE_MIB_UNKNOWN)
		format_gib(gpu->used_mib, used);
	if (gpu->total_mib)
		format_gib(gpu->total_mib, total);
	text_addf(&text, "%s/%sG in use", used, total);
	if (gpu->holder_count > 1)
		text_addf(&text, " by %zu jobs", gpu->holder_count);
	if (gpu->utilization >= 0)
		text_addf(&text, ", %d%% busy", gpu->utilization);
	put_text(sheet, label, words);
}

static void put_peak(
	const struct sheet *sheet, uint64_t peak_mib, uint64_t declared_mib, bool is_over)
{
	char words[128];
	struct text text = TEXT_ON(words);

	if (!peak_mib)
		return;
	report_add_size(peak_mib, &text);
	if (declared_mib) {
		text_add(&text, " of ");
		report_add_size(declared_mib, &text);
		text_addf(&text, " declared%s", is_over ? ", over" : "");
	}
	put_text(sheet, "peak", words);
}

static void put_running(const struct sheet *sheet)
{
	const struct view_holder *job = sheet->job->runs;
	char words[512], need[128];
	struct text gpus = TEXT_ON(words), needs = TEXT_ON(need);
	unsigned count = add_gpus(sheet, &gpus);

	putf(sheet, "state", "%s %s%s%s", job_state(sheet->job),
		count ? "on GPU " : "without a GPU", words,
		job->is_lingering ? ": it has ended, but processes that it left run"
				  : "");
	put_text(sheet, "user", job->user);
	put_text(sheet, "command", sheet->job->command);
	if (count) {
		explain_need(&job->need, count, &needs);
		put_text(sheet, "needs", need);
	}
	put_moment(sheet, "started", job->age_ms);
	put_limit(sheet, job->limit_ms, job->age_ms);
	if (job->pid)
		putf(sheet, "pid", "%u", job->pid);
	put_peak(sheet, job->peak_mib, job->need.mib, job->is_over_declared);
	for (size_t i = 0; i < sheet->view->gpu_count; i++)
		if (lease_on(&sheet->view->gpus[i], sheet->job))
			put_use(sheet, &sheet->view->gpus[i]);
}

/* --- attempts that have ended ------------------------------------------------------- */

/* "failed, exit status 1, ran 5m29s" */
static void put_outcome(
	const struct sheet *sheet, const char *label, const struct history_end *end)
{
	char words[256];
	struct text text = TEXT_ON(words);
	int64_t least, most;

	ended_add_state(end, &text);
	if (end->status[0])
		text_addf(&text, ", exit status %s", end->status);
	if (ended_span_ms(end, &least, &most)) {
		text_add(&text, ", ran ");
		ended_add_ran(end, &text);
	}
	put_text(sheet, label, words);
}

static void put_ended(const struct sheet *sheet)
{
	const struct history_end *end = sheet->job->ends;
	int64_t now_ms = sheet->view->real_ms;
	char words[64], span[DURATION_SIZE];
	struct text text = TEXT_ON(words);
	unsigned mean, peak;
	uint64_t gpu_ms;

	put_outcome(sheet, "state", end);
	put_text(sheet, "user", end->user);
	put_text(sheet, "command", sheet->job->command);
	put_text(sheet, "on GPU", end->gpus);
	format_duration(end->waited_ms, span);
	put_text(sheet, "waited", span);
	show_add_time(&text, end->since_ms, now_ms);
	put_text(sheet, "started", words);
	put_moment(sheet, "ended", now_ms - end->gone_ms);
	gpu_ms = ended_gpu_ms(end, end->since_ms, end->alive_ms);
	format_duration((int64_t)gpu_ms, span);
	if (gpu_ms)
		put_text(sheet, "GPU time", span);
	put_peak(sheet, ended_peak_mib(end), end->vram_mib, false);
	if (ended_utilization(end, &mean, &peak))
		putf(sheet, "busy", "%u%%, at most %u%%", mean, peak);
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
	struct sheet sheet = { view, job, style, out };
	const char *name = job_name(job);
	uint32_t attempt = 0;
	size_t last = 0;

	putf(&sheet, "job", name[0] ? "%llu '%s'" : "%llu", (unsigned long long)job->id,
		name);
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
		putf(&sheet, "attempt", "%u", attempt);
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

	document_begin(&json, "gpulease-job/1", jobs->view.real_ms, jobs->view.directory);
	json_key(&json, "jobs");
	json_begin_array(&json);
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->all[i].is_known)
			json_put_one(&json, &jobs->view, &jobs->all[i]);
	json_end(&json);
	document_finish(&json);
}
