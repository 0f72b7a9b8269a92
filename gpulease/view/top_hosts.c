/*
 * The lists that take the place of the GPUs and the queue: the machines, and the help.
 */
#include "top_parts.h"

/* --- the machines ---------------------------------------------------------------- */

struct top_counts top_count(const struct machine *machine)
{
	struct top_counts counts = { .longest_ms = -1, .waiting = machine->queue_count };

	for (size_t i = 0; i < machine->gpu_count; i++) {
		const struct machine_gpu *gpu = &machine->gpus[i];

		counts.gpus += gpu->instance < 0;
		if (gpu->is_divided)
			continue;
		counts.places++;
		if (strcmp(gpu->state, "idle") == 0)
			counts.idle++;
		else if (strcmp(gpu->state, "leased") == 0)
			counts.leased++;
		else
			counts.others++;
	}
	for (size_t i = 0; i < machine->queue_count; i++)
		counts.longest_ms =
			max_i64(counts.longest_ms, machine->queue[i].waits_ms);
	return counts;
}

const char *top_host_name(const struct top_host *host)
{
	if (host->name[0])
		return host->name;
	return host->machine.host[0] ? host->machine.host : "this machine";
}

const char *top_host_trouble(const struct top_host *host)
{
	return host->trouble[0] ? host->trouble : host->machine.trouble;
}

static void walk_hosts(struct top_walk *walk)
{
	for (size_t i = 0; i < walk->sheet->host_count; i++) {
		struct top_line line = LINE_NONE;

		line.item = i;
		line.is_chosen = i == walk->sheet->view->host;
		top_walk_add(walk, line, -1);
	}
}

static const struct top_host *host_of(
	const struct top_sheet *sheet, const struct top_line *line)
{
	return &sheet->hosts[line->item];
}

static void host_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	text_add(&out->text, top_host_name(host_of(sheet, line)));
}

/* Appends a number; nothing is known of a machine that has never answered. */
static void add_count(const struct top_host *host, size_t count, struct top_cell *out)
{
	if (host->machine.taken_unix_ms <= 0)
		text_add(&out->text, "-");
	else
		text_addf(&out->text, "%zu", count);
}

static void gpus_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct top_host *host = host_of(sheet, line);

	add_count(host, top_count(&host->machine).gpus, out);
}

static void idle_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct top_host *host = host_of(sheet, line);
	unsigned idle = top_count(&host->machine).idle;

	add_count(host, idle, out);
	out->ink = idle ? INK_GREEN : INK_NONE;
}

static void leased_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct top_host *host = host_of(sheet, line);

	add_count(host, top_count(&host->machine).leased, out);
}

static void others_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct top_host *host = host_of(sheet, line);
	unsigned others = top_count(&host->machine).others;

	add_count(host, others, out);
	out->ink = others ? INK_YELLOW : INK_NONE;
}

static void waiting_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct top_host *host = host_of(sheet, line);

	add_count(host, host->machine.queue_count, out);
	text_add(&out->text, host->machine.is_queue_cut ? "+" : "");
}

static void longest_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	top_add_span(&out->text, top_count(&host_of(sheet, line)->machine).longest_ms);
}

static void trouble_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct top_host *host = host_of(sheet, line);
	const char *trouble = top_host_trouble(host);

	out->ink = *trouble ? INK_RED : INK_NONE;
	text_add(&out->text, *trouble                           ? trouble
			     : host->machine.taken_unix_ms <= 0 ? "no answer yet"
								: "-");
}

/* clang-format off */
static const struct top_column host_columns[] = {
	{ .title = "HOST", .cell = host_cell, .most = 16, .wide_most = 32, .least = 8 },
	{ .title = "GPUS", .cell = gpus_cell, .most = 5, .is_right = true },
	{ .title = "IDLE", .cell = idle_cell, .most = 5, .is_right = true },
	{ .title = "LEASED", .cell = leased_cell, .most = 5, .is_right = true },
	{ .title = "OTHER", .cell = others_cell, .most = 5, .is_right = true },
	{ .title = "WAIT", .cell = waiting_cell, .most = 7, .is_right = true },
	{ .title = "LONGEST", .cell = longest_cell, .most = 8, .is_right = true },
	{ .title = "TROUBLE", .cell = trouble_cell, .least = 15 },
	{ .title = NULL },
};
/* clang-format on */

const struct top_list top_host_list = { host_columns, walk_hosts };

/* --- the help -------------------------------------------------------------------- */

struct help_row {
	const char *key, *text;
	bool is_action;
};

static const struct help_row help[] = {
	{ "up, down, k, j", "choose a job, or a machine in the list of machines", false },
	{ "Home, End", "choose the first or the last job", false },
	{ "PgUp, PgDn", "go further; while no job is chosen, scroll the lists", false },
	{ "left, right", "show another machine of --host", false },
	{ "Esc", "choose no job; leave this help", false },
	{ "f", "follow the log of the chosen job", false },
	{ "a", "attach to the session of the chosen job", true },
	{ "c", "cancel the chosen job; the last line asks first", true },
	{ "u", "show only your own jobs, or all", false },
	{ "t", "show times as spans, or as times of day", false },
	{ "h", "list the machines of --host, or show the chosen one", false },
	{ "?", "show this help, or leave it", false },
	{ "q", "quit", false },
	{ "MEMORY", "in use on the GPU; for each further job that shares it, its peak",
		false },
	{ "LEFT", "time until the time limit of the job", false },
	{ "at 0% for ... !", "the job has the GPU, but does not use it", false },
	{ "not watched", "no process records the use of this job any more", false },
	{ "START", "when the job starts if all jobs run to their limits", false },
	{ "OTHER", "paused, external, unknown and similar GPUs", false },
};

static void walk_help(struct top_walk *walk)
{
	for (size_t i = 0; i < ARRAY_SIZE(help); i++) {
		struct top_line line = LINE_NONE;

		line.item = i;
		if (!help[i].is_action || walk->sheet->view->can_act)
			top_walk_add(walk, line, -1);
	}
}

static void key_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	(void)sheet;
	text_addf(&out->text, " %s", help[line->item].key);
	out->ink = INK_BOLD;
}

static void help_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	(void)sheet;
	text_add(&out->text, help[line->item].text);
}

/* clang-format off */
static const struct top_column help_columns[] = {
	{ .title = " KEY", .cell = key_cell, .most = 16 },
	{ .title = "MEANING", .cell = help_cell, .least = 20 },
	{ .title = NULL },
};
/* clang-format on */

const struct top_list top_help_list = { help_columns, walk_help };
