#include "json_members.h"
#include "operands.h"
#include "parse.h"
#include "report.h"
#include "show_cells.h"
#include "show_queue.h"
#include "wait_reason.h"

/* --- the table of the queue -------------------------------------------------------- */

enum {
	JOB_POSITION,
	JOB_ID,
	JOB_ATTEMPT,
	JOB_USER,
	JOB_GPUS,
	JOB_PRIORITY,
	JOB_SINCE,
	JOB_WAITS,
	JOB_NAME,
	JOB_WHY,
	JOB_COMMAND,
};

static const struct table_column job_columns[] = {
	[JOB_POSITION] = { .title = "POS", .is_right = true },
	[JOB_ID] = { .title = "JOB", .is_right = true },
	[JOB_ATTEMPT] = { "TRY", .is_right = true, .is_optional = true, .rank = 4 },
	[JOB_USER] = { .title = "USER", .good = 8, .least = 6 },
	[JOB_GPUS] = { .title = "GPUS", .is_right = true },
	[JOB_PRIORITY] = { "PRIO", .is_right = true, .is_optional = true, .rank = 2 },
	[JOB_SINCE] = { .title = "SINCE", .rank = 5 },
	[JOB_WAITS] = { .title = "WAITS", .is_right = true, .rank = 1 },
	[JOB_NAME] = { .title = "NAME", .is_optional = true, .good = 12, .least = 6 },
	[JOB_WHY] = { .title = "WHY", .is_folded = true, .rank = 3 },
	[JOB_COMMAND] = { .title = "COMMAND", .good = 30, .least = 8 },
};

/* Puts "2", "0.5", "18G" or "2x18G". */
static void job_put_gpus(struct table *table, const struct view_job *job)
{
	char wish[MIB_TEXT_SIZE + 24];
	struct text text = TEXT_ON(wish);
	bool is_whole = need_is_whole(&job->need);

	if (is_whole || job->gpus != 1)
		text_addf(&text, is_whole ? "%u" : "%ux", job->gpus);
	show_add_need(&job->need, &text);
	table_put(table, JOB_GPUS, wish);
}

/* Whether to show PRIO: some ticket has a priority other than 0. */
static bool has_priorities(const struct view *view)
{
	for (size_t i = 0; i < view->job_count; i++)
		if (view->jobs[i].priority)
			return true;
	return false;
}

static void job_put_row(
	struct table *table, const struct view *view, size_t at, bool has_priority)
{
	const struct view_job *job = &view->jobs[at];

	table_row(table);
	table_putf(table, JOB_POSITION, "%zu", at + 1);
	show_put_id(table, JOB_ID, job->ticket);
	show_put_attempt(table, JOB_ATTEMPT, job->attempt);
	table_put(table, JOB_USER, job->user);
	job_put_gpus(table, job);
	if (has_priority)
		table_putf(table, JOB_PRIORITY, "%lld", (long long)job->priority);
	show_put_time(table, JOB_SINCE, view->real_ms - job->waits_ms, view->real_ms);
	show_put_span(table, JOB_WAITS, job->waits_ms);
	table_put(table, JOB_NAME, job->name);
	table_put(table, JOB_WHY, job->why);
	table_put(table, JOB_COMMAND, job->command);
}

/* --- the table of jobs without a GPU ----------------------------------------------- */

enum {
	GPULESS_JOB,
	GPULESS_ATTEMPT,
	GPULESS_USER,
	GPULESS_PID,
	GPULESS_AGE,
	GPULESS_LEFT,
	GPULESS_NAME,
	GPULESS_COMMAND,
};

static const struct table_column gpuless_columns[] = {
	[GPULESS_JOB] = { .title = "JOB", .is_right = true },
	[GPULESS_ATTEMPT] = { "TRY", .is_right = true, .is_optional = true, .rank = 3 },
	[GPULESS_USER] = { .title = "USER", .good = 8, .least = 6 },
	[GPULESS_PID] = { .title = "PID", .is_right = true, .rank = 4 },
	[GPULESS_AGE] = { .title = "AGE", .is_right = true, .rank = 2 },
	[GPULESS_LEFT] = { "LEFT", .is_right = true, .is_optional = true, .rank = 1 },
	[GPULESS_NAME] = { .title = "NAME", .is_optional = true, .good = 12, .least = 6 },
	[GPULESS_COMMAND] = { .title = "COMMAND", .good = 24, .least = 8 },
};

static int show_gpuless(
	const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(gpuless_columns);

	if (!view->gpuless_count)
		return 0;
	for (size_t i = 0; i < view->gpuless_count; i++) {
		const struct view_holder *job = &view->gpuless[i];

		table_row(&table);
		show_put_id(&table, GPULESS_JOB, job->ticket);
		show_put_attempt(&table, GPULESS_ATTEMPT, job->attempt);
		table_put(&table, GPULESS_USER, job->user);
		show_put_id(&table, GPULESS_PID, job->pid);
		show_put_span(&table, GPULESS_AGE, job->age_ms);
		show_put_left(&table, GPULESS_LEFT, job);
		table_put(&table, GPULESS_NAME, job->name);
		table_put(&table, GPULESS_COMMAND, job->command);
	}
	(void)fputc('\n', out);
	line_print("running without a GPU:", style, out);
	return show_and_release(&table, style, out);
}

/* --- jobs that use more than they have declared ------------------------------------ */

/* Returns the lease of job @ticket on @gpu if it uses more than declared; else NULL. */
static const struct view_holder *excess_on(const struct view_gpu *gpu, uint64_t ticket)
{
	for (size_t i = 0; i < gpu->holder_count; i++)
		if (gpu->holders[i].ticket == ticket && gpu->holders[i].is_over_declared)
			return &gpu->holders[i];
	return NULL;
}

/* Prints the line of a job; GPU @first is the first that its lease is on. */
static void excess_print(const struct view *view, size_t first,
	const struct view_holder *holder, const struct table_style *style, FILE *out)
{
	char line[1024];
	struct text text = TEXT_ON(line);
	unsigned count = 0;

	for (size_t i = first; i < view->gpu_count; i++)
		count += excess_on(&view->gpus[i], holder->ticket) != NULL;
	text_addf(&text, "job %llu (%s) uses ", (unsigned long long)holder->ticket,
		holder->user);
	report_add_size(holder->peak_mib, &text);
	/* a lease has one peak, which does not say on which of its GPUs it was */
	text_add(&text, count == 1 ? " on GPU " : " on one of GPU ");
	count = 0;
	for (size_t i = first; i < view->gpu_count; i++)
		if (excess_on(&view->gpus[i], holder->ticket))
			text_addf(&text, "%s%s", count++ ? "," : "",
				view_gpu_name(&view->gpus[i]).text);
	text_add(&text, " and declared ");
	report_add_size(holder->need.mib, &text);
	line_print(line, style, out);
}

/*
 * Finds the next job that uses more than declared, from holder *@at of GPU *@gpu on, and moves both
 * on.  Finds each job once, on the first of its GPUs.  Returns NULL after the last.
 */
static const struct view_holder *excess_next(
	const struct view *view, size_t *gpu, size_t *at)
{
	for (; *gpu < view->gpu_count; ++*gpu, *at = 0) {
		const struct view_gpu *on = &view->gpus[*gpu];

		while (*at < on->holder_count) {
			const struct view_holder *holder = &on->holders[(*at)++];
			bool is_found = !holder->is_over_declared;

			for (size_t before = 0; before < *gpu && !is_found; before++)
				is_found = excess_on(&view->gpus[before], holder->ticket);
			if (!is_found)
				return holder;
		}
	}
	return NULL;
}

void show_excess(const struct view *view, const struct table_style *style, FILE *out)
{
	const struct view_holder *holder;
	size_t gpu = 0, at = 0;

	while ((holder = excess_next(view, &gpu, &at)))
		excess_print(view, gpu, holder, style, out);
}

/* --- the tables -------------------------------------------------------------------- */

static void show_shares(
	const struct view *view, const struct table_style *style, FILE *out)
{
	for (size_t i = 0; i < view->share_count; i++) {
		char line[256];
		struct text text = TEXT_ON(line);

		text_addf(&text, "%s has ", view->shares[i].user);
		explain_fair_share(&view->share, &view->shares[i].counts, &text);
		line_print(line, style, out);
	}
}

int show_waiting(const struct view *view, const char *if_none,
	const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(job_columns);
	bool has_priority = has_priorities(view);
	int r;

	if (!view->job_count) {
		line_print(if_none, style, out);
		show_excess(view, style, out);
		return show_gpuless(view, style, out);
	}
	for (size_t i = 0; i < view->job_count; i++)
		job_put_row(&table, view, i, has_priority);
	r = show_and_release(&table, style, out);
	if (view->has_more_jobs)
		line_print("more jobs wait after these", style, out);
	show_shares(view, style, out);
	show_excess(view, style, out);
	return r < 0 ? r : show_gpuless(view, style, out);
}

int show_queue(const struct view *view, const struct table_style *style, FILE *out)
{
	char line[80];

	(void)snprintf(line, sizeof(line), "no job waits; %u job%s: see --status",
		view->running, view->running == 1 ? " runs" : "s run");
	return show_waiting(view, view->running ? line : NO_JOB_WAITS, style, out);
}

/* --- JSON -------------------------------------------------------------------------- */

/* Prints the ids in the list of a request. */
static void json_put_ids(struct json *json, const char *key, const char *list)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_JOB);
	struct operand job;

	json_key(json, key);
	json_begin_array(json);
	while (*list && operand_next(&walk, &job, NULL) == 0)
		json_unsigned(json, job.first);
	json_end(json);
}

/* The values of reason_kind. */
static const char *const reasons[] = {
	[VERDICT_START] = NULL,
	[VERDICT_LEASED] = "leased",
	[VERDICT_BEHIND] = "behind",
	[VERDICT_GPU] = "gpu",
	[VERDICT_HELD] = "held",
	[VERDICT_LIMIT] = "limit",
};

void member_reason(struct json *json, enum verdict_kind verdict)
{
	json_put_text(json, "reason_kind", reasons[verdict]);
}

void json_put_job(struct json *json, const struct view *view, const struct view_job *job)
{
	json_begin_object(json);
	member_number(json, "position", (uint64_t)(job - view->jobs) + 1);
	member_number(json, "ticket", job->ticket);
	member_number(json, "attempt", job->attempt);
	member_name(json, job->name, job->name_is_cut);
	member_text(json, "user", job->user);
	member_number_if(json, "pid", job->pid, job->pid);
	member_number(json, "gpus", job->gpus);
	member_need(json, &job->need);
	json_key(json, "priority");
	json_signed(json, job->priority);
	json_put_ids(json, "after", job->after);
	json_put_ids(json, "after_ok", job->after_ok);
	member_bool(json, "singleton", job->is_singleton);
	member_time(json, "limit_ms", job->limit_ms);
	member_time(json, "since_unix_ms", view->real_ms - job->waits_ms);
	member_span(json, "waits_ms", job->waits_ms);
	member_time(json, "begin_at_unix_ms", job->begin_ms);
	member_bool(json, "on_hold", job->is_on_hold);
	member_span(json, "late_ms", job->late_ms);
	member_time(json, "start_at_unix_ms", job->start_ms);
	member_bool(json, "can_start", job->verdict == VERDICT_START);
	member_bool(json, "stopped", job->is_stopped);
	json_put_text(json, "stuck", job->stuck);
	member_reason(json, job->verdict);
	member_number_if(json, "behind", job->behind, job->behind);
	member_number_if(json, "held_by", job->held_by, job->held_by);
	member_number_if(json, "limit_line", job->limit_line, job->limit_line);
	member_text(json, "why", job->why);
	member_foretold(json, &job->foretold, 0);
	json_put_text(json, "command", job->command);
	json_end(json);
}

void member_holder(
	struct json *json, const struct view *view, const struct view_holder *holder)
{
	member_number_if(json, "ticket", holder->ticket, holder->ticket);
	member_number_if(json, "attempt", holder->ticket, holder->attempt);
	member_name(json, holder->name, holder->name_is_cut);
	json_put_text(json, "user", holder->user);
	member_number_if(json, "pid", holder->pid, holder->pid);
	json_put_text(json, "command", holder->command);
	member_span(json, "age_ms", holder->age_ms);
	member_time(json, "started_unix_ms",
		holder->age_ms >= 0 ? view->real_ms - holder->age_ms : 0);
	member_time(json, "limit_ms", holder->limit_ms);
}

static void json_put_gpuless(struct json *json, const struct view *view)
{
	json_key(json, "running_without_gpus");
	json_begin_array(json);
	for (size_t i = 0; i < view->gpuless_count; i++) {
		json_begin_object(json);
		member_holder(json, view, &view->gpuless[i]);
		json_end(json);
	}
	json_end(json);
}

void member_queue(struct json *json, const struct view *view)
{
	json_key(json, "queue");
	json_begin_array(json);
	for (size_t i = 0; i < view->job_count; i++)
		json_put_job(json, view, &view->jobs[i]);
	json_end(json);
	member_bool(json, "queue_is_cut", view->has_more_jobs);
	json_key(json, "fair_share");
	json_begin_array(json);
	for (size_t i = 0; i < view->share_count; i++) {
		const struct broker_share *counts = &view->shares[i].counts;

		json_begin_object(json);
		member_text(json, "user", view->shares[i].user);
		member_number(json, "had_gpu_ms", counts->had_ms);
		member_number(json, "waiting_gpu_ms", counts->waits_ms);
		member_span(json, "late_ms", counts->late_ms);
		json_end(json);
	}
	json_end(json);
	json_put_gpuless(json, view);
}

static void member_excess(struct json *json, const struct view *view)
{
	const struct view_holder *holder;
	size_t gpu = 0, at = 0;

	json_key(json, "over_declared");
	json_begin_array(json);
	while ((holder = excess_next(view, &gpu, &at)))
		json_unsigned(json, holder->ticket);
	json_end(json);
}

void show_queue_json(const struct view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "queue", view->real_ms, view->directory);
	member_queue(&json, view);
	member_excess(&json, view);
	document_finish(&json);
}
