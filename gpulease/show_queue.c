/* The tables of who waits, and of who runs without a GPU. */
#include "parse.h"
#include "show_parts.h"

/* --- the queue --------------------------------------------------------------------- */

enum {
	JOB_POSITION,
	JOB_TICKET,
	JOB_ATTEMPT,
	JOB_USER,
	JOB_GPUS,
	JOB_PRIORITY,
	JOB_SINCE,
	JOB_WAITS,
	JOB_NAME,
	JOB_WHY,
};

static const struct table_column job_columns[] = {
	[JOB_POSITION] = { .title = "POS", .is_right = true },
	[JOB_TICKET] = { .title = "TICKET", .is_right = true },
	[JOB_ATTEMPT] = { .title = "TRY", .is_right = true, .is_optional = true },
	[JOB_USER] = { .title = "USER", .least = 6 },
	[JOB_GPUS] = { .title = "GPUS", .is_right = true },
	[JOB_PRIORITY] = { .title = "PRIO", .is_right = true, .is_optional = true },
	[JOB_SINCE] = { .title = "SINCE" },
	[JOB_WAITS] = { .title = "WAITS", .is_right = true },
	[JOB_NAME] = { .title = "NAME", .is_optional = true, .least = 6 },
	[JOB_WHY] = { .title = "WHY", .least = 16 },
};

/* "2", "0.5", "18G", "2x18G" */
static void put_wish(struct table *table, const struct view_job *job)
{
	char wish[MIB_TEXT_SIZE + 24];
	struct text text = TEXT_ON(wish);
	bool is_whole = need_is_whole(&job->need);

	if (is_whole || job->gpus != 1)
		text_addf(&text, is_whole ? "%u" : "%ux", job->gpus);
	show_add_need(&job->need, &text);
	table_put(table, JOB_GPUS, wish);
}

static bool has_priorities(const struct view *view)
{
	for (size_t i = 0; i < view->job_count; i++)
		if (view->jobs[i].priority)
			return true;
	return false;
}

static void put_job(
	struct table *table, const struct view *view, size_t at, bool has_priority)
{
	const struct view_job *job = &view->jobs[at];

	table_row(table);
	table_putf(table, JOB_POSITION, "%zu", at + 1);
	show_put_id(table, JOB_TICKET, job->ticket);
	show_put_attempt(table, JOB_ATTEMPT, job->attempt);
	table_put(table, JOB_USER, job->user);
	put_wish(table, job);
	if (has_priority)
		table_putf(table, JOB_PRIORITY, "%lld", (long long)job->priority);
	show_put_time(table, JOB_SINCE, view->real_ms - job->waits_ms, view->real_ms);
	show_put_span(table, JOB_WAITS, job->waits_ms);
	table_put(table, JOB_NAME, job->name);
	table_put(table, JOB_WHY, job->why);
}

/* --- without a GPU ----------------------------------------------------------------- */

enum {
	BARE_TICKET,
	BARE_ATTEMPT,
	BARE_USER,
	BARE_PID,
	BARE_AGE,
	BARE_NAME,
	BARE_COMMAND,
};

static const struct table_column bare_columns[] = {
	[BARE_TICKET] = { .title = "TICKET", .is_right = true },
	[BARE_ATTEMPT] = { .title = "TRY", .is_right = true, .is_optional = true },
	[BARE_USER] = { .title = "USER", .least = 6 },
	[BARE_PID] = { .title = "PID", .is_right = true },
	[BARE_AGE] = { .title = "AGE", .is_right = true },
	[BARE_NAME] = { .title = "NAME", .is_optional = true, .least = 6 },
	[BARE_COMMAND] = { .title = "COMMAND", .least = 8 },
};

static int show_gpuless(
	const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(bare_columns);

	if (!view->gpuless_count)
		return 0;
	for (size_t i = 0; i < view->gpuless_count; i++) {
		const struct view_holder *job = &view->gpuless[i];

		table_row(&table);
		show_put_id(&table, BARE_TICKET, job->ticket);
		show_put_attempt(&table, BARE_ATTEMPT, job->attempt);
		table_put(&table, BARE_USER, job->user);
		show_put_id(&table, BARE_PID, job->pid);
		show_put_span(&table, BARE_AGE, job->age_ms);
		table_put(&table, BARE_NAME, job->name);
		table_put(&table, BARE_COMMAND, job->command);
	}
	(void)fputc('\n', out);
	line_print("running without a GPU:", style, out);
	return show_and_release(&table, style, out);
}

/* --- both -------------------------------------------------------------------------- */

int show_queue(const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(job_columns);
	bool has_priority = has_priorities(view);
	int r;

	if (!view->job_count) {
		line_print("nobody waits", style, out);
		show_excess(view, style, out);
		return show_gpuless(view, style, out);
	}
	for (size_t i = 0; i < view->job_count; i++)
		put_job(&table, view, i, has_priority);
	r = show_and_release(&table, style, out);
	if (view->has_more_jobs)
		line_print("more wait behind them", style, out);
	show_excess(view, style, out);
	return r < 0 ? r : show_gpuless(view, style, out);
}
