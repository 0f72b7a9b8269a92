/*
 * The list of the GPUs and of the jobs that have them.
 */
#include "top_parts.h"

/* --- lines ----------------------------------------------------------------------- */

bool top_is_shown(const struct top_sheet *sheet, const char *user)
{
	return !sheet->only || strcmp(sheet->only, user) == 0;
}

/* Adds the lease @at as the next line of the GPU @gpu. */
static void add_lease(struct top_walk *walk, size_t gpu, size_t at, bool is_further)
{
	const struct machine_lease *lease = &walk->sheet->machine->leases[at];
	struct top_line line = { .gpu = gpu, .item = at, .is_further = is_further };

	line.is_foreign = !top_is_shown(walk->sheet, lease->user);
	top_walk_add(walk, line, line.is_foreign ? -1 : lease->job);
}

/*
 * Adds the lines of a GPU, whose leases begin at @at: the shown ones, or the first one, or a line
 * without a lease.  Returns the index behind its leases.
 */
static size_t add_gpu(struct top_walk *walk, size_t gpu, size_t at)
{
	const struct machine *machine = walk->sheet->machine;
	size_t first = at, shown = 0;

	for (; at < machine->lease_count && machine->leases[at].gpu == gpu; at++)
		if (top_is_shown(walk->sheet, machine->leases[at].user))
			add_lease(walk, gpu, at, shown++ > 0);
	if (!shown && at > first) {
		add_lease(walk, gpu, first, false);
	} else if (!shown) {
		struct top_line line = LINE_NONE;

		line.gpu = gpu;
		top_walk_add(walk, line, -1);
	}
	return at;
}

static void walk_gpus(struct top_walk *walk)
{
	const struct machine *machine = walk->sheet->machine;
	size_t at = 0;

	for (size_t gpu = 0; gpu < machine->gpu_count; gpu++) {
		while (at < machine->lease_count && machine->leases[at].gpu == SIZE_MAX)
			at++;
		at = add_gpu(walk, gpu, at);
	}
	for (at = 0; at < machine->lease_count; at++)
		if (machine->leases[at].gpu == SIZE_MAX &&
			top_is_shown(walk->sheet, machine->leases[at].user))
			add_lease(walk, NO_ITEM, at, false);
}

/* --- cells of the GPU ------------------------------------------------------------ */

/* Returns the GPU of a line that shows it; NULL: it has none, or the line above shows it. */
static const struct machine_gpu *gpu_of(
	const struct top_sheet *sheet, const struct top_line *line)
{
	return line->gpu == NO_ITEM || line->is_further
		       ? NULL
		       : &sheet->machine->gpus[line->gpu];
}

static const struct machine_lease *lease_of(
	const struct top_sheet *sheet, const struct top_line *line)
{
	return line->item == NO_ITEM ? NULL : &sheet->machine->leases[line->item];
}

static enum ink state_ink(const char *state)
{
	static const struct {
		const char *state;
		enum ink ink;
	} inks[] = { { "idle", INK_GREEN }, { "leased", INK_BLUE },
		{ "external", INK_RED }, { "unknown", INK_RED } };

	for (size_t i = 0; i < ARRAY_SIZE(inks); i++)
		if (strcmp(state, inks[i].state) == 0)
			return inks[i].ink;
	return INK_YELLOW;
}

static void index_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_gpu *gpu = gpu_of(sheet, line);

	if (gpu && gpu->node[0])
		text_addf(&out->text, "%s/%lld", gpu->node, (long long)gpu->index);
	else if (gpu && gpu->instance >= 0)
		text_addf(&out->text, "%lld:%lld", (long long)gpu->index,
			(long long)gpu->instance);
	else if (gpu && gpu->index >= 0)
		text_addf(&out->text, "%2lld", (long long)gpu->index);
	else if (!line->is_further)
		text_add(&out->text, " -");
}

void top_add_model(struct text *out, const char *model)
{
	static const char maker[] = "NVIDIA ", mig[] = " MIG ";
	const char *profile = strstr(model, mig);

	if (profile)
		model = profile + 1;
	else if (strncmp(model, maker, sizeof(maker) - 1) == 0)
		model += sizeof(maker) - 1;
	text_add(out, model);
}

static void model_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_gpu *gpu = gpu_of(sheet, line);

	if (gpu && sheet->models_differ)
		top_add_model(&out->text, gpu->model);
}

static void bar_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	static const char *const full[] = { "#", "\xe2\x96\x88" };
	static const char *const light[] = { ".", "\xe2\x96\x91" };
	const struct machine_gpu *gpu = gpu_of(sheet, line);
	unsigned width = top_width(sheet->view) < 72 ? 5 : 10;
	double part = 0;

	if (!gpu || gpu->node[0])
		return;
	if (gpu->total_mib > 0 && gpu->used_mib > 0)
		part = (double)gpu->used_mib / (double)gpu->total_mib;
	out->ink = state_ink(gpu->state);
	for (unsigned i = 0; i < width; i++)
		text_add(&out->text, part * width >= i + 0.5
					     ? full[sheet->view->has_utf8]
					     : light[sheet->view->has_utf8]);
}

/* What is in use of the GPU; of a further lease, the most that its job was seen to use. */
static void used_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_gpu *gpu = gpu_of(sheet, line);
	const struct machine_lease *lease = lease_of(sheet, line);

	if (gpu && !gpu->node[0])
		top_add_size(&out->text, gpu->used_mib);
	else if (line->is_further && lease->peak_mib >= 0)
		top_add_size(&out->text, lease->peak_mib);
}

static void utilization_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_gpu *gpu = gpu_of(sheet, line);

	if (gpu && gpu->utilization_percent >= 0)
		text_addf(&out->text, "%lld%%",
			(long long)min_i64(gpu->utilization_percent, 100));
	else if (gpu && !gpu->node[0])
		text_add(&out->text, "-");
}

/* Returns the mean of the known samples from @from to before @to; -1: none is known. */
static int mean_sample(const signed char *samples, unsigned from, unsigned to)
{
	int sum = 0, known = 0;

	for (unsigned i = from; i < to; i++)
		if (samples[i] >= 0) {
			sum += samples[i];
			known++;
		}
	return known ? sum / known : -1;
}

/* The utilization of the last five minutes, the latest on the right. */
static void samples_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	enum { WIDTH = 15, PER_CELL = TOP_SAMPLES / WIDTH, LEVELS = 8 };
	static const char *const blocks[] = { "\xe2\x96\x81", "\xe2\x96\x82",
		"\xe2\x96\x83", "\xe2\x96\x84", "\xe2\x96\x85", "\xe2\x96\x86",
		"\xe2\x96\x87", "\xe2\x96\x88" };
	static const char *const letters[LEVELS] = { "_", ".", ":", "-", "=", "+", "*",
		"#" };
	const char *const *levels = sheet->view->has_utf8 ? blocks : letters;
	const struct top_host *host = sheet->host;
	unsigned count = (unsigned)min_i64(host->sample_count, TOP_SAMPLES);
	unsigned missing = TOP_SAMPLES - count;

	if (line->is_further || line->gpu >= TOP_GPUS_MAX ||
		sheet->machine->gpus[line->gpu].node[0])
		return;
	for (unsigned i = 0; i < WIDTH; i++) {
		unsigned from = (unsigned)max_i64(i * PER_CELL, missing) - missing;
		unsigned to = (unsigned)max_i64((i + 1) * PER_CELL, missing) - missing;
		int mean = mean_sample(host->samples[line->gpu], from, to);

		text_add(&out->text, mean < 0 ? " " : levels[mean * (LEVELS - 1) / 100]);
	}
}

/* --- cells of the lease ---------------------------------------------------------- */

static void user_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);
	const char *user = lease ? lease->user : sheet->machine->gpus[line->gpu].user;
	const char *own = sheet->view->own_user;

	text_add(&out->text, *user ? user : "-");
	if (lease && own && strcmp(own, user) == 0)
		out->ink = INK_BOLD;
}

static void job_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);

	if (lease && lease->job >= 0)
		text_addf(&out->text, "%lld", (long long)lease->job);
	else
		text_add(&out->text, "-");
}

/* What a GPU is that no job has: the text takes the rest of the row. */
static void add_state(const struct machine_gpu *gpu, struct top_cell *out)
{
	const char *why = strncmp(gpu->why, "is ", 3) == 0 ? gpu->why + 3 : gpu->why;
	size_t size = strlen(gpu->state);

	out->takes_rest = true;
	out->ink = state_ink(gpu->state);
	if (gpu->is_divided) {
		out->ink = INK_FAINT;
		text_add(&out->text, *why ? why : "divided into MIG instances");
		return;
	}
	/* "paused by root: a fan is broken" says the state already */
	if (strncmp(why, gpu->state, size) != 0)
		text_add(&out->text, *gpu->state ? gpu->state : "unknown");
	if (strcmp(gpu->state, "idle") == 0) {
		if (gpu->idle_for_ms > 0) { /* 0: seen idle once only */
			text_add(&out->text, " ");
			top_add_span(&out->text, gpu->idle_for_ms);
		}
		return;
	}
	if (strcmp(gpu->state, "external") == 0 && gpu->pid >= 0) {
		text_addf(&out->text, ": pid %lld %s", (long long)gpu->pid, gpu->command);
		return;
	}
	if (*why && out->text.used)
		text_add(&out->text, ": ");
	text_add(&out->text, why);
}

static void name_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);

	if (!lease)
		add_state(&sheet->machine->gpus[line->gpu], out);
	else
		text_add(&out->text,
			*lease->name && !line->is_foreign ? lease->name : "-");
}

/* From here on, each line has a lease: a line without one ends with its name. */

static void share_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);

	top_add_need(&out->text, lease->share, lease->vram_mib);
}

static void runs_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);

	if (sheet->view->is_clock)
		top_add_time(&out->text, sheet->view, lease->started_unix_ms);
	else
		top_add_span(&out->text, lease->age_ms);
}

static void left_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);
	bool is_clock = sheet->view->is_clock;
	int64_t since = is_clock ? lease->started_unix_ms : lease->age_ms;

	if (lease->limit_ms <= 0 || since < 0)
		text_add(&out->text, "-");
	else if (is_clock)
		top_add_time(&out->text, sheet->view, top_sum(since, lease->limit_ms));
	else
		top_add_span(&out->text, max_i64(0, lease->limit_ms - since));
}

static void peak_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);

	if (lease->peak_mib < 0)
		return;
	top_add_size(&out->text, lease->peak_mib);
	if (!lease->is_over_declared)
		return;
	text_add(&out->text, "!");
	out->ink = INK_RED;
}

/* A GPU that has leases, and yet another state than that, says so before the first command. */
static void add_other_state(const struct machine_gpu *gpu, struct text *out)
{
	if (gpu && gpu->is_paused)
		text_add(out, "paused: ");
	else if (gpu && strcmp(gpu->state, "leased") != 0 &&
		 strcmp(gpu->state, "lingering") != 0)
		text_addf(out, "%s: ", gpu->state);
}

static bool is_not_watched(const struct machine_lease *lease)
{
	bool is_known = lease->utilization_percent >= 0 || lease->unused_for_ms >= 0 ||
			lease->unused_ms >= 0;

	return is_known && !lease->is_watched;
}

static void command_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_lease *lease = lease_of(sheet, line);

	add_other_state(gpu_of(sheet, line), &out->text);
	if (lease->is_lingering) {
		text_add(&out->text, "ended, but left processes: ");
		out->ink = INK_YELLOW;
	} else if (lease->is_unused) {
		text_add(&out->text, "at 0% for ");
		top_add_span(&out->text, lease->unused_for_ms);
		text_add(&out->text, " ! ");
		out->ink = INK_RED;
	} else if (is_not_watched(lease)) {
		text_add(&out->text, "not watched: ");
		out->ink = INK_YELLOW;
	}
	if (!line->is_foreign)
		text_add(&out->text, lease->command);
}

/* Slurm knows neither the memory nor the use of the GPUs of a cluster. */
/* clang-format off */
static const struct top_column gpu_columns[] = {
	{ .title = "GPU", .cell = index_cell, .most = 24, .least = 7 },
	{ .title = "MODEL", .cell = model_cell, .most = 16, .least = 6, .is_wide_only = true,
		.is_optional = true },
	{ .title = "MEMORY", .cell = bar_cell, .most = 10, .is_optional = true },
	{ .title = "", .cell = used_cell, .most = 5, .usual = 4, .is_right = true,
		.is_optional = true },
	{ .title = "UTIL", .cell = utilization_cell, .most = 4, .is_right = true,
		.is_optional = true },
	{ .title = "5 MINUTES", .cell = samples_cell, .most = 15, .is_wide_only = true,
		.is_optional = true },
	{ .title = "USER", .cell = user_cell, .most = 8, .wide_most = 12, .least = 6 },
	{ .title = "JOB", .cell = job_cell, .most = 10, .usual = 4, .is_right = true },
	{ .title = "NAME", .cell = name_cell, .most = 12, .wide_most = 20, .least = 6 },
	{ .title = "SHARE", .cell = share_cell, .most = 9, .is_wide_only = true,
		.is_optional = true },
	{ .title = "RUNS", .cell = runs_cell, .clock_title = "SINCE", .most = 11, .usual = 5,
		.is_wide_only = true, .is_right = true },
	{ .title = "LEFT", .cell = left_cell, .clock_title = "ENDS", .most = 11, .usual = 5,
		.is_right = true },
	{ .title = "PEAK", .cell = peak_cell, .most = 6, .is_wide_only = true,
		.is_optional = true, .is_right = true },
	{ .title = "COMMAND", .cell = command_cell, .least = 18 },
	{ .title = NULL },
};
/* clang-format on */

const struct top_list top_gpu_list = { gpu_columns, walk_gpus };
