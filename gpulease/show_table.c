#include <time.h>

#include "explain.h"
#include "parse.h"
#include "show_parts.h"

/* --- what several have ------------------------------------------------------------- */

void show_put_id(struct table *table, unsigned column, uint64_t id)
{
	if (id)
		table_putf(table, column, "%llu", (unsigned long long)id);
}

void show_put_attempt(struct table *table, unsigned column, uint32_t attempt)
{
	if (attempt > 1)
		table_putf(table, column, "%u", attempt);
}

void show_put_span(struct table *table, unsigned column, int64_t span_ms)
{
	char text[DURATION_SIZE];

	if (span_ms < 0)
		return;
	format_duration(span_ms, text);
	table_put(table, column, text);
}

/* The time of day, with the date where that is another than at @now_ms. */
void show_put_time(struct table *table, unsigned column, int64_t at_ms, int64_t now_ms)
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

void show_add_need(const struct need *need, struct text *out)
{
	char size[MIB_TEXT_SIZE];

	if (need_is_whole(need))
		return;
	if (need->percent)
		explain_share(need->percent, out);
	if (!need->mib)
		return;
	format_mib(need->mib, size);
	text_addf(out, "%s%s", need->percent ? "+" : "", size);
}

int show_and_release(struct table *table, const struct table_style *style, FILE *out)
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
	GPU_SHARE,
	GPU_TICKET,
	GPU_ATTEMPT,
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
	[GPU_SHARE] = { .title = "SHARE", .is_optional = true },
	[GPU_TICKET] = { .title = "TICKET", .is_right = true },
	[GPU_ATTEMPT] = { .title = "TRY", .is_right = true, .is_optional = true },
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

static struct gpu_name name_of(const struct view_gpu *gpu)
{
	struct gpu_name name;
	struct text text = TEXT_ON(name.text);

	text_addf(&text, "%u", gpu->index);
	if (gpu->instance >= 0)
		text_addf(&text, ":%lld", (long long)gpu->instance);
	return name;
}

/* A GPU whose instances are leased is nobody's concern itself. */
static void put_state(struct table *table, const struct view_gpu *gpu)
{
	if (gpu->has_mig && gpu->state == GPU_UNKNOWN) {
		table_put(table, GPU_STATE, "MIG");
		return;
	}
	table_putf(table, GPU_STATE, "%s%s", state_word(gpu->state),
		gpu->is_paused && gpu->state != GPU_PAUSED ? ", paused" : "");
	table_tint(table, GPU_STATE, state_tints[gpu->state]);
}

static void put_holder(struct table *table, const struct view_holder *holder)
{
	char share[MIB_TEXT_SIZE + 8];
	struct text text = TEXT_ON(share);

	if (holder->ticket)
		show_add_need(&holder->need, &text);
	table_put(table, GPU_SHARE, share);
	show_put_id(table, GPU_TICKET, holder->ticket);
	show_put_attempt(table, GPU_ATTEMPT, holder->attempt);
	table_put(table, GPU_USER, holder->user);
	show_put_id(table, GPU_PID, holder->pid);
	show_put_span(table, GPU_AGE, holder->age_ms);
	table_put(table, GPU_NAME, holder->name);
	table_put(table, GPU_COMMAND, holder->command);
}

/* The row of a further lease: what is the GPU's stands above. */
static void put_sharer(struct table *table, const struct view_gpu *gpu, size_t at)
{
	static const unsigned above[] = { GPU_INDEX, GPU_MODEL, GPU_MEMORY,
		GPU_UTILIZATION };
	const struct view_holder *holder = &gpu->holders[at];
	enum gpu_state state = holder->is_lingering ? GPU_LINGERING : GPU_LEASED;

	table_row(table);
	for (size_t i = 0; i < ARRAY_SIZE(above); i++)
		if (above[i] != GPU_UTILIZATION || gpu->utilization >= 0)
			table_put(table, above[i], " ");
	table_put(table, GPU_STATE, state_word(state));
	table_tint(table, GPU_STATE, state_tints[state]);
	put_holder(table, holder);
}

static void put_gpu(struct table *table, const struct view_gpu *gpu)
{
	table_row(table);
	table_put(table, GPU_INDEX, name_of(gpu).text);
	table_put(table, GPU_MODEL, gpu->model);
	put_memory(table, gpu);
	if (gpu->utilization >= 0)
		table_putf(table, GPU_UTILIZATION, "%d%%", gpu->utilization);
	put_state(table, gpu);
	if (gpu->idle_ms > 0) /* 0: seen idle once, which the state says */
		show_put_span(table, GPU_IDLE, gpu->idle_ms);
	if (gpu->holder_count)
		put_holder(table, &gpu->holders[0]);
	for (size_t i = 1; i < gpu->holder_count; i++)
		put_sharer(table, gpu, i);
}

/* What the table does not say of the state: a user has the column, others a line below. */
static const char *note_on(const struct view_gpu *gpu)
{
	const char *why = gpu->why;

	if (gpu->state == GPU_EXTERNAL && gpu->holder_count && gpu->holders->pid &&
		!gpu->is_paused)
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
		text_addf(&text, "GPU %s", name_of(&view->gpus[i]).text);
		for (size_t other = i + 1; other < view->gpu_count; other++)
			if (strcmp(note_on(&view->gpus[other]), note) == 0)
				text_addf(&text, ",%s", name_of(&view->gpus[other]).text);
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

int show_status(const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(gpu_columns);
	int r = 0;

	if (view->gpu_count) {
		for (size_t i = 0; i < view->gpu_count; i++)
			put_gpu(&table, &view->gpus[i]);
		r = show_and_release(&table, style, out);
		print_notes(view, style, out);
	} else {
		line_print("no GPU is known", style, out);
	}
	print_source(view, style, out);
	(void)fputc('\n', out);
	return r < 0 ? r : show_queue(view, style, out);
}
