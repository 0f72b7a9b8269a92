#include "gpu_reason.h"
#include "json_members.h"
#include "parse.h"
#include "report.h"
#include "show_cells.h"
#include "show_queue.h"
#include "show_status.h"

/* --- the table of the GPUs --------------------------------------------------------- */

enum {
	GPU_INDEX,
	GPU_MODEL,
	GPU_MEMORY,
	GPU_UTILIZATION,
	GPU_STATE,
	GPU_SHARE,
	GPU_JOB,
	GPU_ATTEMPT,
	GPU_USER,
	GPU_PID,
	GPU_AGE,
	GPU_LEFT,
	GPU_IDLE,
	GPU_NAME,
	GPU_NOTE,
	GPU_COMMAND,
};

static const struct table_column gpu_columns[] = {
	[GPU_INDEX] = { .title = "GPU", .is_right = true },
	[GPU_MODEL] = { .title = "MODEL", .is_optional = true, .good = 14, .least = 9 },
	[GPU_MEMORY] = { .title = "MEMORY", .is_right = true },
	[GPU_UTILIZATION] = { "UTIL", .is_right = true, .is_optional = true, .rank = 3 },
	[GPU_STATE] = { .title = "STATE" },
	[GPU_SHARE] = { .title = "SHARE", .is_optional = true, .rank = 2 },
	[GPU_JOB] = { .title = "JOB", .is_right = true },
	[GPU_ATTEMPT] = { "TRY", .is_right = true, .is_optional = true, .rank = 5 },
	[GPU_USER] = { .title = "USER", .good = 8, .least = 6 },
	[GPU_PID] = { .title = "PID", .is_right = true, .rank = 6 },
	[GPU_AGE] = { .title = "AGE", .is_right = true, .rank = 4 },
	[GPU_LEFT] = { "LEFT", .is_right = true, .is_optional = true, .rank = 1 },
	[GPU_IDLE] = { "IDLE", .is_right = true, .is_optional = true, .rank = 7 },
	[GPU_NAME] = { .title = "NAME", .is_optional = true, .good = 12, .least = 6 },
	[GPU_NOTE] = { "NOTE", .is_optional = true, .rank = 8, .good = 14, .least = 6 },
	[GPU_COMMAND] = { .title = "COMMAND", .good = 14, .least = 8 },
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

/* Whether all GPUs are the same card.  Then a line above the table names it. */
static bool gpus_are_equal(const struct view *view)
{
	const struct view_gpu *first = &view->gpus[0];

	for (size_t i = 0; i < view->gpu_count; i++)
		if (!first->model[0] || !first->total_mib ||
			strcmp(view->gpus[i].model, first->model) != 0 ||
			view->gpus[i].total_mib != first->total_mib)
			return false;
	return true;
}

/* Prints "8 x NVIDIA H100 80GB HBM3, 79.6G each". */
static void status_print_card(
	const struct view *view, const struct table_style *style, FILE *out)
{
	char words[sizeof(view->gpus->model) + 64];
	struct text line = TEXT_ON(words);

	text_addf(&line, "%zu x %s, ", view->gpu_count, view->gpus[0].model);
	report_add_size(view->gpus[0].total_mib, &line);
	text_add(&line, view->gpu_count == 1 ? "" : " each");
	line_print(words, style, out);
}

/* Puts "3.1/79.6G", or "3.1G" if all cards are equal. */
static void gpu_put_memory(
	struct table *table, const struct view_gpu *gpu, bool all_are_equal)
{
	char used[GIB_TEXT_SIZE] = "?", total[GIB_TEXT_SIZE] = "?";

	if (gpu->used_mib != PROBE_MIB_UNKNOWN)
		format_gib(gpu->used_mib, used);
	if (gpu->total_mib)
		format_gib(gpu->total_mib, total);
	table_putf(table, GPU_MEMORY, all_are_equal ? "%sG" : "%s/%sG", used, total);
}

/* A GPU shows "MIG" if its MIG instances are leased instead of it. */
static void gpu_put_state(struct table *table, const struct view_gpu *gpu)
{
	if (gpu->has_mig && gpu->state == GPU_UNKNOWN) {
		table_put(table, GPU_STATE, "MIG");
		return;
	}
	table_putf(table, GPU_STATE, "%s%s", state_word(gpu->state),
		gpu->is_paused && gpu->state != GPU_PAUSED ? ", paused" : "");
	table_tint(table, GPU_STATE, state_tints[gpu->state]);
}

/* The columns of a lease, or of a process that uses the GPU without one. */
static void gpu_put_holder(struct table *table, const struct view_holder *holder)
{
	char share[MIB_TEXT_SIZE + 8];
	struct text text = TEXT_ON(share);

	if (holder->ticket)
		show_add_need(&holder->need, &text);
	table_put(table, GPU_SHARE, share);
	show_put_id(table, GPU_JOB, holder->ticket);
	show_put_attempt(table, GPU_ATTEMPT, holder->attempt);
	table_put(table, GPU_USER, holder->user);
	show_put_id(table, GPU_PID, holder->pid);
	show_put_span(table, GPU_AGE, holder->age_ms);
	show_put_left(table, GPU_LEFT, holder);
	table_put(table, GPU_NAME, holder->name);
	table_put(table, GPU_NOTE, holder->note);
	table_put(table, GPU_COMMAND, holder->command);
}

/* The row of a further lease.  The first row has the columns of the GPU; here they are blank. */
static void gpu_put_sharer(struct table *table, const struct view_gpu *gpu, size_t at)
{
	static const unsigned above[] = { GPU_INDEX, GPU_MODEL, GPU_MEMORY,
		GPU_UTILIZATION };
	const struct view_holder *holder = &gpu->holders[at];
	enum gpu_state state = holder->is_lingering ? GPU_LINGERING : GPU_LEASED;

	table_row(table);
	for (size_t i = 0; i < ARRAY_SIZE(above); i++)
		table_blank(table, above[i]);
	table_put(table, GPU_STATE, state_word(state));
	table_tint(table, GPU_STATE, state_tints[state]);
	gpu_put_holder(table, holder);
}

static void gpu_put_rows(
	struct table *table, const struct view_gpu *gpu, bool all_are_equal)
{
	static const char vendor[] = "NVIDIA ";
	bool has_vendor = strncmp(gpu->model, vendor, sizeof(vendor) - 1) == 0;

	table_row(table);
	table_put(table, GPU_INDEX, view_gpu_name(gpu).text);
	if (!all_are_equal)
		table_put(table, GPU_MODEL,
			gpu->model + (has_vendor ? sizeof(vendor) - 1 : 0));
	gpu_put_memory(table, gpu, all_are_equal);
	if (gpu->utilization >= 0)
		table_putf(table, GPU_UTILIZATION, "%d%%", gpu->utilization);
	gpu_put_state(table, gpu);
	if (gpu->idle_ms > 0) /* 0: seen idle once only, which STATE shows */
		show_put_span(table, GPU_IDLE, gpu->idle_ms);
	if (gpu->holder_count)
		gpu_put_holder(table, &gpu->holders[0]);
	for (size_t i = 1; i < gpu->holder_count; i++)
		gpu_put_sharer(table, gpu, i);
}

/* Returns the note below the table that explains the state of @gpu; "": the table says it all. */
static const char *gpu_note(const struct view_gpu *gpu)
{
	/*
	 * the columns USER, PID and COMMAND show the process that uses it, and MEMORY how much it
	 * uses
	 */
	if (gpu->state == GPU_EXTERNAL && gpu->holder_count && gpu->holders->pid &&
		!gpu->is_paused && !gpu->is_past_use)
		return "";
	return gpu->why + gpu->why_verb_size;
}

/* Whether the job does not use the GPU and has --idle-ok. */
static bool is_unused_ok(const struct view_holder *holder)
{
	return holder->unused_ok_ms && holder->unused_for_ms > 0;
}

/* Prints a line for each lease with a GPU that is unused, or that no process watches any more. */
static void status_print_use(
	const struct view *view, const struct table_style *style, FILE *out)
{
	char line[160], span[DURATION_SIZE];

	for (size_t i = 0; i < view->gpu_count; i++)
		for (size_t at = 0; at < view->gpus[i].holder_count; at++) {
			const struct view_holder *holder = &view->gpus[i].holders[at];
			struct text text = TEXT_ON(line);

			text_addf(&text, "GPU %s: job %llu ",
				view_gpu_name(&view->gpus[i]).text,
				(unsigned long long)holder->ticket);
			format_duration(holder->unused_for_ms, span);
			if (holder->is_unused || is_unused_ok(holder))
				text_addf(&text, "has not used it for %s", span);
			else if (holder->has_use && !holder->is_watched &&
				 !holder->is_lingering)
				text_add(&text, "is not watched any more");
			else
				continue;
			if (is_unused_ok(holder) && !holder->is_unused)
				text_add(&text, ", as its --idle-ok allows");
			line_print(line, style, out);
		}
}

/* Prints a line for each different note, with all the GPUs that it holds for. */
static void status_print_notes(
	const struct view *view, const struct table_style *style, FILE *out)
{
	char line[VIEW_WHY_SIZE + 1024];

	for (size_t i = 0; i < view->gpu_count; i++) {
		const char *note = gpu_note(&view->gpus[i]);
		struct text text = TEXT_ON(line);
		bool is_printed = !note[0];

		for (size_t before = 0; before < i && !is_printed; before++)
			is_printed = strcmp(gpu_note(&view->gpus[before]), note) == 0;
		if (is_printed)
			continue;
		text_addf(&text, "GPU %s", view_gpu_name(&view->gpus[i]).text);
		for (size_t other = i + 1; other < view->gpu_count; other++)
			if (strcmp(gpu_note(&view->gpus[other]), note) == 0)
				text_addf(&text, ",%s",
					view_gpu_name(&view->gpus[other]).text);
		text_addf(&text, ": %s", note);
		line_print(line, style, out);
	}
}

/* Prints a line about the source of the states, unless that is a recent answer of nvidia-smi. */
static void status_print_source(
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
				: "not in PATH; all that is known comes from the lease files");
	else if (!is_known)
		text_add(&text, "nvidia-smi: no answer yet; all that is known comes from "
				"the lease files");
	if (text.used)
		line_print(line, style, out);
}

static void status_print_windows(
	const struct view *view, const struct table_style *style, FILE *out)
{
	char line[VIEW_WHY_SIZE + sizeof(view->windows->gpus) + 8];

	for (size_t i = 0; i < view->window_count; i++) {
		(void)snprintf(line, sizeof(line), "GPU %s: %s", view->windows[i].gpus,
			view->windows[i].why);
		line_print(line, style, out);
	}
}

int show_windows(const struct view *view, const struct table_style *style, FILE *out)
{
	if (!view->window_count)
		line_print("no GPU is kept", style, out);
	status_print_windows(view, style, out);
	return 0;
}

int show_status(const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(gpu_columns);
	int r = 0;

	if (view->gpu_count) {
		bool all_are_equal = gpus_are_equal(view);

		if (all_are_equal)
			status_print_card(view, style, out);
		for (size_t i = 0; i < view->gpu_count; i++)
			gpu_put_rows(&table, &view->gpus[i], all_are_equal);
		r = show_and_release(&table, style, out);
		status_print_notes(view, style, out);
		status_print_use(view, style, out);
		status_print_windows(view, style, out);
	} else {
		line_print("no GPU is known", style, out);
	}
	status_print_source(view, style, out);
	(void)fputc('\n', out);
	return r < 0 ? r : show_waiting(view, NO_JOB_WAITS, style, out);
}

/* --- JSON -------------------------------------------------------------------------- */

static void json_put_card(struct json *json, const struct view_gpu *gpu)
{
	if (gpu->node)
		member_text(json, "node", gpu->node);
	member_number(json, "index", gpu->index);
	member_span(json, "instance", gpu->instance);
	json_put_text(json, "parent", gpu->parent);
	member_text(json, "uuid", gpu->uuid);
	json_put_text(json, "bus_id", gpu->bus_id);
	json_put_text(json, "model", gpu->model);
	member_number_if(json, "memory_total_mib", gpu->total_mib, gpu->total_mib);
	member_number_if(json, "memory_used_mib", gpu->used_mib != PROBE_MIB_UNKNOWN,
		gpu->used_mib);
	member_span(json, "utilization_percent", gpu->utilization);
}

static void json_put_migs(
	struct json *json, const struct view *view, const struct view_gpu *gpu)
{
	json_key(json, "mig");
	json_begin_array(json);
	for (size_t i = 0; i < view->mig_count; i++) {
		const struct probe_mig *mig = &view->migs[i];

		if (gpu->row < 0 || mig->gpu != (uint32_t)gpu->row)
			continue;
		json_begin_object(json);
		member_number(json, "device", mig->device);
		member_text(json, "profile", mig->profile);
		member_text(json, "uuid", mig->uuid);
		json_end(json);
	}
	json_end(json);
}

void json_put_lease(
	struct json *json, const struct view *view, const struct view_holder *holder)
{
	bool has_use = holder->has_use;

	json_begin_object(json);
	member_holder(json, view, holder);
	member_bool(json, "lingering", holder->is_lingering);
	member_need(json, &holder->need);
	member_number_if(json, "peak_mib", holder->peak_mib, holder->peak_mib);
	member_bool(json, "over_declared", holder->is_over_declared);
	member_span(
		json, "utilization_mean_percent", has_use ? holder->mean_percent : -1);
	member_span(json, "unused_for_ms", has_use ? holder->unused_for_ms : -1);
	member_span(json, "unused_ms", has_use ? holder->unused_ms : -1);
	member_bool(json, "unused", holder->is_unused);
	member_bool(json, "unused_ok", holder->unused_ok_ms != 0);
	member_number_if(json, "unused_ok_ms", holder->unused_ok_ms > 0,
		(uint64_t)holder->unused_ok_ms);
	member_bool(json, "watched", holder->is_watched);
	json_put_text(json, "note", holder->note);
	json_end(json);
}

static void json_put_leases(
	struct json *json, const struct view *view, const struct view_gpu *gpu)
{
	json_key(json, "leases");
	json_begin_array(json);
	for (size_t i = 0; i < gpu->holder_count; i++)
		if (gpu->holders[i].ticket)
			json_put_lease(json, view, &gpu->holders[i]);
	json_end(json);
}

static void json_put_gpu(
	struct json *json, const struct view *view, const struct view_gpu *gpu)
{
	const struct view_holder no_holder = { .age_ms = VIEW_UNKNOWN };

	json_begin_object(json);
	json_put_card(json, gpu);
	member_text(json, "state", state_word(gpu->state));
	json_put_text(json, "why", gpu->why);
	member_bool(json, "paused", gpu->is_paused);
	json_put_text(json, "paused_by", gpu->is_paused ? gpu->paused_by : "");
	json_put_text(json, "pause_reason", gpu->is_paused ? gpu->reason : "");
	member_span(json, "idle_for_ms", gpu->idle_ms);
	member_holder(json, view, gpu->holder_count ? gpu->holders : &no_holder);
	member_share(json, "free_share", gpu->free_percent >= 0, gpu->free_percent);
	member_span(json, "free_mib", gpu->free_mib);
	member_span(json, "foreign_mib", gpu->foreign_mib);
	json_put_leases(json, view, gpu);
	json_put_migs(json, view, gpu);
	json_end(json);
}

static void json_put_probe(struct json *json, const struct view *view)
{
	json_key(json, "nvidia_smi");
	json_begin_object(json);
	member_bool(json, "found", view->has_nvidia_smi);
	member_span(json, "answer_age_ms", view->probe_age_ms);
	member_bool(json, "is_old", view->is_probe_old);
	json_put_text(json, "trouble", view->trouble);
	json_end(json);
}

static void member_windows(struct json *json, const struct view *view)
{
	json_key(json, "windows");
	json_begin_array(json);
	for (size_t i = 0; i < view->window_count; i++) {
		const struct view_window *window = &view->windows[i];

		json_begin_object(json);
		member_number(json, "id", window->id);
		member_text(json, "gpus", window->gpus);
		member_bool(json, "has_begun", window->has_begun);
		member_time(json, "from_unix_ms", window->from_ms);
		member_time(json, "until_unix_ms", window->until_ms);
		json_put_text(json, "but", window->but);
		json_put_text(json, "by", window->by);
		json_put_text(json, "reason", window->reason);
		json_end(json);
	}
	json_end(json);
}

void show_windows_json(const struct view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "windows", view->real_ms, view->directory);
	member_windows(&json, view);
	document_finish(&json);
}

void show_status_json(const struct view *view, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "status", view->real_ms, view->directory);
	member_bool(&json, "simulated", view->is_simulated);
	json_put_probe(&json, view);
	member_number(&json, "broken_records", view->broken_records);
	member_number(&json, "without_slot", view->slotless);
	json_key(&json, "gpus");
	json_begin_array(&json);
	for (size_t i = 0; i < view->gpu_count; i++)
		json_put_gpu(&json, view, &view->gpus[i]);
	json_end(&json);
	member_queue(&json, view);
	member_windows(&json, view);
	document_finish(&json);
}
