#include "top_parts.h"

/* --- lists ----------------------------------------------------------------------- */

/* A list, and how much of it is to be drawn. */
struct extent {
	const struct top_list *list;
	size_t count, chosen; /* of all its lines */
	size_t first, shown;  /* the visible ones */
	unsigned rows;        /* of the screen, with the titles */
};

/* Counts the lines of a list, and notes their jobs. */
static struct extent extent_of(const struct top_sheet *sheet, const struct top_list *list)
{
	struct top_walk walk = { .sheet = sheet, .chosen = NO_ITEM, .has_jobs = true };

	list->walk(&walk);
	return (struct extent){
		.list = list, .count = walk.count, .chosen = walk.chosen
	};
}

/*
 * Sets which lines are visible in ->rows.  If not all of them are, the last row says how many are
 * missing.  Scrolls by *@scroll, and subtracts what that was; adds to ->last_first_row.
 */
static void extent_place(
	const struct top_sheet *sheet, struct extent *extent, size_t *scroll)
{
	size_t room = extent->rows > 1 ? extent->rows - 1 : 0;
	size_t hidden;

	extent->shown = extent->count <= room ? extent->count : room ? room - 1 : 0;
	hidden = extent->count - extent->shown;
	extent->first = *scroll < hidden ? *scroll : hidden;
	*scroll -= extent->first;
	sheet->frame->last_first_row += (unsigned)hidden;
	if (extent->chosen == NO_ITEM || !extent->shown)
		return;
	if (extent->chosen < extent->first)
		extent->first = extent->chosen;
	if (extent->chosen >= extent->first + extent->shown)
		extent->first = extent->chosen - extent->shown + 1;
}

static void extent_draw(const struct top_sheet *sheet, const struct extent *extent)
{
	size_t above = extent->first;
	size_t below = extent->count - extent->first - extent->shown;
	struct top_line lines[TOP_ROWS_MAX];
	struct top_walk walk = { .sheet = sheet,
		.first = extent->first,
		.room = extent->shown,
		.lines = lines,
		.chosen = NO_ITEM };
	char words[64];
	struct text text = TEXT_ON(words);

	if (!extent->rows)
		return;
	extent->list->walk(&walk);
	top_table_draw(sheet, extent->list->columns, lines, extent->shown);
	if (!above && !below)
		return;
	text_add(&text, "   ");
	if (above)
		text_addf(&text, " -%zu above", above);
	if (below)
		text_addf(&text, " +%zu more", below);
	pen_row(sheet->frame, sheet->view, words, INK_FAINT);
}

/* --- the parts of the screen ----------------------------------------------------- */

enum { WINDOWS_SHOWN = 3 };

/* The rows that each part gets. */
struct shares {
	struct extent gpus, queue;
	unsigned windows, ended, today, log;
	unsigned gap_below_title, gap_below_gpus, gap_below_queue;
};

/* Takes up to @wanted of the *@left rows. */
static unsigned take(unsigned *left, unsigned wanted)
{
	unsigned taken = wanted < *left ? wanted : *left;

	*left -= taken;
	return taken;
}

/* A list without lines takes no rows. */
static unsigned rows_of(const struct extent *extent)
{
	return extent->count ? (unsigned)extent->count + 1 : 0;
}

/* What a list may keep although there is not enough room for all: a third, with its titles. */
static unsigned kept_rows(const struct extent *extent, unsigned left)
{
	unsigned third = left / 3 > 3 ? left / 3 : 3;

	return rows_of(extent) < third ? rows_of(extent) : third;
}

static void share_rows(
	const struct top_sheet *sheet, unsigned left, struct shares *shares)
{
	unsigned log =
		sheet->is_wide && sheet->view->log_count
			? 1 + (unsigned)min_i64(sheet->view->log_count, TOP_LOG_LINES)
			: 0;
	unsigned queue, has_ended = top_has_ended(sheet);

	shares->windows =
		take(&left, (unsigned)min_i64((int64_t)sheet->machine->window_count,
				    left < 14 ? 1 : WINDOWS_SHOWN));
	shares->ended = left >= 10 ? take(&left, has_ended) : 0;
	shares->today = left >= 14 ? take(&left, sheet->is_wide) : 0;
	shares->log = left >= 20 ? take(&left, log < left / 5 ? log : left / 5) : 0;
	/* so that the GPUs of a large machine do not hide the queue */
	queue = take(&left, kept_rows(&shares->queue, left));
	shares->gpus.rows = take(&left, rows_of(&shares->gpus));
	left += queue;
	shares->queue.rows = take(&left, rows_of(&shares->queue));
	shares->log += take(&left, log - shares->log);
	shares->gap_below_title = take(&left, 1);
	shares->gap_below_gpus = shares->queue.rows ? take(&left, 1) : 0;
	shares->gap_below_queue =
		shares->ended || shares->today || shares->log ? take(&left, 1) : 0;
	if (shares->ended)
		shares->ended += take(&left, 2);
}

static void draw_gap(const struct top_sheet *sheet, unsigned rows)
{
	while (rows-- > 0)
		pen_row(sheet->frame, sheet->view, "", INK_NONE);
}

static void draw_machine(const struct top_sheet *sheet, unsigned left)
{
	size_t scroll = sheet->view->first_row;
	struct shares shares = { .gpus = extent_of(sheet, &top_gpu_list),
		.queue = extent_of(sheet, &top_queue_list) };

	share_rows(sheet, left, &shares);
	extent_place(sheet, &shares.gpus, &scroll);
	extent_place(sheet, &shares.queue, &scroll);
	draw_gap(sheet, shares.gap_below_title);
	extent_draw(sheet, &shares.gpus);
	top_draw_windows(sheet, shares.windows);
	draw_gap(sheet, shares.gap_below_gpus);
	extent_draw(sheet, &shares.queue);
	draw_gap(sheet, shares.gap_below_queue);
	if (shares.today)
		top_draw_today(sheet);
	top_draw_ended(sheet, shares.ended);
	top_draw_log(sheet, shares.log);
}

/* Draws one list in the place of the GPUs and the queue. */
static void draw_alone(
	const struct top_sheet *sheet, const struct top_list *list, unsigned left)
{
	size_t scroll = sheet->view->first_row;
	struct extent extent = extent_of(sheet, list);

	if (rows_of(&extent) < left)
		draw_gap(sheet, 1);
	extent.rows = take(&left, rows_of(&extent));
	extent_place(sheet, &extent, &scroll);
	extent_draw(sheet, &extent);
}

/* --- the screen ------------------------------------------------------------------ */

static bool has_several_models(const struct machine *machine)
{
	for (size_t i = 1; i < machine->gpu_count; i++)
		if (strcmp(machine->gpus[i].model, machine->gpus[0].model) != 0)
			return true;
	return false;
}

static void draw_too_small(const struct top_view *view, struct top_frame *frame)
{
	char words[128];
	struct text text = TEXT_ON(words);

	text_addf(&text, "--top needs %ux%u, the terminal has %ux%u", TOP_LEAST_COLUMNS,
		TOP_LEAST_ROWS, view->columns, view->rows);
	pen_row(frame, view, words, INK_NONE);
}

static const char *only_user(const struct top_view *view)
{
	return view->is_mine && view->own_user ? view->own_user : view->user;
}

void top_screen_draw(const struct top_host *hosts, size_t host_count,
	const struct top_view *view, struct top_frame *frame)
{
	struct noted_jobs noted = { .bits = { 0 } };
	const struct top_host *host = &hosts[view->host < host_count ? view->host : 0];
	struct top_sheet sheet = { .hosts = hosts,
		.host_count = host_count,
		.host = host,
		.machine = &host->machine,
		.view = view,
		.only = only_user(view),
		.is_wide = view->columns >= TOP_WIDE_COLUMNS,
		.frame = frame,
		.noted = &noted };
	unsigned bottom = (unsigned)min_i64(view->rows, TOP_ROWS_MAX) - 1;

	frame->rows = 0;
	frame->job_count = 0;
	frame->last_first_row = 0;
	if (view->columns < TOP_LEAST_COLUMNS || view->rows < TOP_LEAST_ROWS) {
		draw_too_small(view, frame);
		return;
	}
	sheet.models_differ = has_several_models(&host->machine);
	top_draw_title(&sheet);
	if (!view->is_help && !view->are_hosts)
		top_draw_trouble(&sheet);
	if (view->is_help)
		draw_alone(&sheet, &top_help_list, bottom - frame->rows);
	else if (view->are_hosts)
		draw_alone(&sheet, &top_host_list, bottom - frame->rows);
	else
		draw_machine(&sheet, bottom - frame->rows);
	draw_gap(&sheet, bottom - frame->rows);
	top_draw_keys(&sheet);
}

/* --- samples --------------------------------------------------------------------- */

/* Returns a number that tells which GPUs @machine has. */
static uint64_t hash_of_gpus(const struct machine *machine)
{
	uint64_t hash = TEXT_HASH_BEGIN;

	for (size_t i = 0; i < machine->gpu_count; i++)
		hash = text_hash(
			hash, machine->gpus[i].uuid, strlen(machine->gpus[i].uuid) + 1);
	return hash;
}

void top_host_sample(struct top_host *host)
{
	const struct machine *machine = &host->machine;
	uint64_t hash = hash_of_gpus(machine);

	if (hash != host->sampled)
		host->sample_count = 0;
	host->sampled = hash;
	for (size_t i = 0; i < TOP_GPUS_MAX; i++) {
		int64_t percent = i < machine->gpu_count
					  ? machine->gpus[i].utilization_percent
					  : -1;

		if (host->sample_count >= TOP_SAMPLES)
			memmove(host->samples[i], host->samples[i] + 1, TOP_SAMPLES - 1);
		host->samples[i][min_i64(host->sample_count, TOP_SAMPLES - 1)] =
			(signed char)max_i64(-1, min_i64(percent, 100));
	}
	if (host->sample_count < TOP_SAMPLES)
		host->sample_count++;
}
