#include <time.h>

#include "explain.h"
#include "parse.h"
#include "show.h"

enum { SAME_END_MS = 2000 }; /* an end known so closely is known */

/* --- what several have ------------------------------------------------------------- */

static void put_id(struct table *table, unsigned column, uint64_t id)
{
	if (id)
		table_putf(table, column, "%llu", (unsigned long long)id);
}

static void put_span(struct table *table, unsigned column, int64_t span_ms)
{
	char text[DURATION_SIZE];

	if (span_ms < 0)
		return;
	format_duration(span_ms, text);
	table_put(table, column, text);
}

/* The time of day, with the date where that is another than at @now_ms. */
static void put_time(struct table *table, unsigned column, int64_t at_ms, int64_t now_ms)
{
	time_t at = (time_t)(at_ms / 1000), now = (time_t)(now_ms / 1000);
	struct tm then, today;
	char text[64];
	bool is_today;

	if (at_ms <= 0 || !localtime_r(&at, &then) || !localtime_r(&now, &today))
		return;
	is_today = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
	if (strftime(text, sizeof(text), is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &then))
		table_put(table, column, text);
}

static int print_and_release(
	struct table *table, const struct table_style *style, FILE *out)
{
	int r = table_print(table, style, out);

	table_release(table);
	return r;
}

/* --- GPUs -------------------------------------------------------------------------- */

enum {
	GPU_INDEX,
	GPU_MODEL,
	GPU_MEMORY,
	GPU_UTILIZATION,
	GPU_STATE,
	GPU_TICKET,
	GPU_USER,
	GPU_PID,
	GPU_AGE,
	GPU_IDLE,
	GPU_NAME,
	GPU_COMMAND,
};

static const struct table_column gpu_columns[] = {
	[GPU_INDEX] = { .title = "GPU", .is_right = true },
	[GPU_MODEL] = { .title = "MODEL", .least = 9 },
	[GPU_MEMORY] = { .title = "MEMORY", .is_right = true },
	[GPU_UTILIZATION] = { .title = "UTIL", .is_right = true, .is_optional = true },
	[GPU_STATE] = { .title = "STATE" },
	[GPU_TICKET] = { .title = "TICKET", .is_right = true },
	[GPU_USER] = { .title = "USER", .least = 6 },
	[GPU_PID] = { .title = "PID", .is_right = true },
	[GPU_AGE] = { .title = "AGE", .is_right = true },
	[GPU_IDLE] = { .title = "IDLE", .is_right = true, .is_optional = true },
	[GPU_NAME] = { .title = "NAME", .is_optional = true, .least = 6 },
	[GPU_COMMAND] = { .title = "COMMAND", .least = 8 },
};

static const enum table_tint state_tints[GPU_STATES] = {
	[GPU_FREE] = TINT_GREEN,
	[GPU_LEASED] = TINT_BLUE,
	[GPU_LINGERING] = TINT_YELLOW,
	[GPU_SETTLING] = TINT_YELLOW,
	[GPU_LOCKED] = TINT_YELLOW,
	[GPU_EXTERNAL] = TINT_RED,
	[GPU_UNKNOWN] = TINT_RED,
	[GPU_PAUSED] = TINT_YELLOW,
};

static void put_memory(struct table *table, const struct view_gpu *gpu)
{
	char used[24] = "?", total[24] = "?";

	if (gpu->used_mib != PROBE_MIB_UNKNOWN)
		(void)snprintf(
			used, sizeof(used), "%llu", (unsigned long long)gpu->used_mib);
	if (gpu->total_mib)
		(void)snprintf(
			total, sizeof(total), "%llu", (unsigned long long)gpu->total_mib);
	table_putf(table, GPU_MEMORY, "%s/%s MiB", used, total);
}

static void put_gpu(struct table *table, const struct view_gpu *gpu)
{
	table_row(table);
	table_putf(table, GPU_INDEX, "%u", gpu->index);
	table_put(table, GPU_MODEL, gpu->model);
	put_memory(table, gpu);
	if (gpu->utilization >= 0)
		table_putf(table, GPU_UTILIZATION, "%d%%", gpu->utilization);
	table_putf(table, GPU_STATE, "%s%s", state_word(gpu->state),
		gpu->is_paused && gpu->state != GPU_PAUSED ? ", paused" : "");
	table_tint(table, GPU_STATE, state_tints[gpu->state]);
	put_id(table, GPU_TICKET, gpu->ticket);
	table_put(table, GPU_USER, gpu->user);
	put_id(table, GPU_PID, gpu->pid);
	put_span(table, GPU_AGE, gpu->age_ms);
	if (gpu->idle_ms > 0) /* 0: seen idle once, which the state says */
		put_span(table, GPU_IDLE, gpu->idle_ms);
	table_put(table, GPU_NAME, gpu->name);
	table_put(table, GPU_COMMAND, gpu->command);
}

/* What the table does not say of the state: a user has the column, others a line below. */
static const char *note_on(const struct view_gpu *gpu)
{
	const char *why = gpu->why;

	if (gpu->state == GPU_EXTERNAL && gpu->pid && !gpu->is_paused)
		return "";
	return strncmp(why, "is ", 3) == 0 ? why + 3 : why;
}

/* A line for each reason, with all the GPUs that it holds for. */
static void print_notes(
	const struct view *view, const struct table_style *style, FILE *out)
{
	char line[VIEW_WHY_SIZE + 1024];

	for (size_t i = 0; i < view->gpu_count; i++) {
		const char *note = note_on(&view->gpus[i]);
		struct text text = TEXT_ON(line);
		bool is_told = !note[0];

		for (size_t before = 0; before < i && !is_told; before++)
			is_told = strcmp(note_on(&view->gpus[before]), note) == 0;
		if (is_told)
			continue;
		text_addf(&text, "GPU %u", view->gpus[i].index);
		for (size_t other = i + 1; other < view->gpu_count; other++)
			if (strcmp(note_on(&view->gpus[other]), note) == 0)
				text_addf(&text, ",%u", view->gpus[other].index);
		text_addf(&text, ": %s", note);
		line_print(line, style, out);
	}
}

/* What the states rest on, where that is not an answer of just now. */
static void print_source(
	const struct view *view, const struct table_style *style, FILE *out)
{
	char line[512], age[DURATION_SIZE];
	struct text text = TEXT_ON(line);
	bool is_known = view->probe_age_ms >= 0;

	format_duration(view->probe_age_ms, age);
	if (is_known && view->trouble[0])
		text_add(&text, view->trouble);
	if (is_known && view->is_probe_old)
		text_addf(&text, "%snvidia-smi: last answer %s ago",
			text.used ? "; " : "", age);
	if (!view->has_nvidia_smi && !view->is_simulated)
		text_addf(&text, "%s%s", text.used ? ", and " : "nvidia-smi: ",
			is_known
				? "it is not in PATH here"
				: "not in PATH; the lease files alone tell what is known");
	else if (!is_known)
		text_add(&text, "nvidia-smi: no answer yet; the lease files alone tell "
				"what is known");
	if (text.used)
		line_print(line, style, out);
}

/* --- the queue --------------------------------------------------------------------- */

enum {
	JOB_POSITION,
	JOB_TICKET,
	JOB_USER,
	JOB_GPUS,
	JOB_SINCE,
	JOB_WAITS,
	JOB_NAME,
	JOB_WHY,
};

static const struct table_column job_columns[] = {
	[JOB_POSITION] = { .title = "POS", .is_right = true },
	[JOB_TICKET] = { .title = "TICKET", .is_right = true },
	[JOB_USER] = { .title = "USER", .least = 6 },
	[JOB_GPUS] = { .title = "GPUS", .is_right = true },
	[JOB_SINCE] = { .title = "SINCE" },
	[JOB_WAITS] = { .title = "WAITS", .is_right = true },
	[JOB_NAME] = { .title = "NAME", .is_optional = true, .least = 6 },
	[JOB_WHY] = { .title = "WHY", .least = 16 },
};

static void put_job(struct table *table, const struct view *view, size_t at)
{
	const struct view_job *job = &view->jobs[at];

	table_row(table);
	table_putf(table, JOB_POSITION, "%zu", at + 1);
	put_id(table, JOB_TICKET, job->ticket);
	table_put(table, JOB_USER, job->user);
	table_putf(table, JOB_GPUS, "%u", job->gpus);
	put_time(table, JOB_SINCE, view->real_ms - job->waits_ms, view->real_ms);
	put_span(table, JOB_WAITS, job->waits_ms);
	table_put(table, JOB_NAME, job->name);
	table_put(table, JOB_WHY, job->why);
}

int show_queue(const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(job_columns);
	int r;

	if (!view->job_count) {
		line_print("nobody waits", style, out);
		return 0;
	}
	for (size_t i = 0; i < view->job_count; i++)
		put_job(&table, view, i);
	r = print_and_release(&table, style, out);
	if (view->has_more_jobs)
		line_print("more wait behind them", style, out);
	return r;
}

int show_status(const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(gpu_columns);
	int r = 0;

	if (view->gpu_count) {
		for (size_t i = 0; i < view->gpu_count; i++)
			put_gpu(&table, &view->gpus[i]);
		r = print_and_release(&table, style, out);
		print_notes(view, style, out);
	} else {
		line_print("no GPU is known", style, out);
	}
	print_source(view, style, out);
	(void)fputc('\n', out);
	return r < 0 ? r : show_queue(view, style, out);
}

/* --- the history ------------------------------------------------------------------- */

enum {
	END_TICKET,
	END_USER,
	END_GPUS,
	END_STARTED,
	END_RAN,
	END_HOW,
	END_NAME,
	END_COMMAND,
};

static const struct table_column end_columns[] = {
	[END_TICKET] = { .title = "TICKET", .is_right = true },
	[END_USER] = { .title = "USER", .least = 6 },
	[END_GPUS] = { .title = "GPUS", .least = 6 },
	[END_STARTED] = { .title = "STARTED" },
	[END_RAN] = { .title = "RAN", .is_right = true },
	[END_HOW] = { .title = "HOW", .least = 10 },
	[END_NAME] = { .title = "NAME", .is_optional = true, .least = 6 },
	[END_COMMAND] = { .title = "COMMAND", .least = 8 },
};

bool ended_span_ms(const struct history_end *end, int64_t *ret_least, int64_t *ret_most)
{
	if (end->since_ms <= 0 || end->gone_ms < end->since_ms)
		return false;
	*ret_most = end->gone_ms - end->since_ms;
	*ret_least = min_i64(*ret_most, max_i64(0, end->alive_ms - end->since_ms));
	return true;
}

const char *ended_how(const struct history_end *end)
{
	return end->how[0] ? end->how : "ended";
}

/* Who first looked long after the end knows no more than that it did not run longer. */
static void put_ran(struct table *table, const struct history_end *end)
{
	char text[DURATION_SIZE];
	int64_t least, most;

	if (!ended_span_ms(end, &least, &most))
		return;
	format_duration(most, text);
	table_putf(
		table, END_RAN, "%s%s", most - least > SAME_END_MS ? "up to " : "", text);
}

static void put_how(struct table *table, const struct history_end *end)
{
	static const struct {
		const char *how, *words;
	} known[] = {
		{ "", "ended" },
		{ "limit", "time limit" },
		{ "cancel", "cancelled" },
		{ "lingered", "given up" },
		{ "reboot", "reboot" },
	};
	const char *words = end->how;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(end->how, known[i].how) == 0)
			words = known[i].words;
	table_putf(table, END_HOW, "%s%s%s", words, end->by[0] ? " by " : "", end->by);
}

static void put_end(struct table *table, const struct history_end *end, int64_t now_ms)
{
	table_row(table);
	put_id(table, END_TICKET, end->ticket);
	table_put(table, END_USER, end->user);
	table_put(table, END_GPUS, end->gpus);
	put_time(table, END_STARTED, end->since_ms, now_ms);
	put_ran(table, end);
	put_how(table, end);
	table_put(table, END_NAME, end->name);
	table_put(table, END_COMMAND, end->command);
}

int show_history(const struct history_end *ends, size_t count, int64_t now_ms,
	const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(end_columns);

	if (!count) {
		line_print("nothing has ended yet", style, out);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		put_end(&table, &ends[i], now_ms);
	return print_and_release(&table, style, out);
}
