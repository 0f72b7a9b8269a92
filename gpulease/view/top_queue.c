/*
 * The list of the waiting jobs.
 */
#include "top_parts.h"

static void walk_queue(struct top_walk *walk)
{
	const struct machine *machine = walk->sheet->machine;

	for (size_t i = 0; i < machine->queue_count; i++) {
		struct top_line line = LINE_NONE;

		line.item = i;
		if (top_is_shown(walk->sheet, machine->queue[i].user))
			top_walk_add(walk, line, machine->queue[i].job);
	}
}

static const struct machine_ticket *ticket_of(
	const struct top_sheet *sheet, const struct top_line *line)
{
	return &sheet->machine->queue[line->item];
}

static void add_number(struct text *out, int64_t number)
{
	if (number < 0)
		text_add(out, "-");
	else
		text_addf(out, "%lld", (long long)number);
}

static void position_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	add_number(&out->text, ticket_of(sheet, line)->position);
}

static void ticket_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	add_number(&out->text, ticket_of(sheet, line)->job);
}

static void user_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const char *user = ticket_of(sheet, line)->user;
	const char *own = sheet->view->own_user;

	text_add(&out->text, *user ? user : "-");
	if (own && strcmp(own, user) == 0)
		out->ink = INK_BOLD;
}

/* "4", of shared GPUs "0.5+18G" or "2x0.5". */
static void gpus_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_ticket *ticket = ticket_of(sheet, line);

	if (ticket->share <= 0 && ticket->vram_mib <= 0) {
		add_number(&out->text, ticket->gpus);
		return;
	}
	if (ticket->gpus > 1)
		text_addf(&out->text, "%lldx", (long long)ticket->gpus);
	top_add_need(&out->text, ticket->share, ticket->vram_mib);
}

static void priority_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	text_addf(&out->text, "%lld", (long long)ticket_of(sheet, line)->priority);
}

static void limit_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	int64_t limit_ms = ticket_of(sheet, line)->limit_ms;

	top_add_span(&out->text, limit_ms > 0 ? limit_ms : -1);
}

static void name_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const char *name = ticket_of(sheet, line)->name;

	text_add(&out->text, *name ? name : "-");
}

static void waits_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_ticket *ticket = ticket_of(sheet, line);

	if (sheet->view->is_clock)
		top_add_time(&out->text, sheet->view, ticket->since_unix_ms);
	else
		top_add_span(&out->text, ticket->waits_ms);
}

static void start_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_ticket *ticket = ticket_of(sheet, line);

	if (ticket->can_start && ticket->start_at_unix_ms <= 0)
		text_add(&out->text, "now");
	else
		top_add_time(&out->text, sheet->view, ticket->start_at_unix_ms);
}

static void why_cell(
	const struct top_sheet *sheet, const struct top_line *line, struct top_cell *out)
{
	const struct machine_ticket *ticket = ticket_of(sheet, line);

	if (ticket->is_stopped) {
		text_add(&out->text, "stopped; ");
		out->ink = INK_YELLOW;
	} else if (ticket->can_start) {
		out->ink = INK_GREEN;
	}
	text_add(&out->text, ticket->why);
}

/* clang-format off */
static const struct top_column queue_columns[] = {
	{ .title = "POS", .cell = position_cell, .most = 6, .is_right = true },
	{ .title = "TICKET", .cell = ticket_cell, .most = 10, .is_right = true },
	{ .title = "USER", .cell = user_cell, .most = 8, .wide_most = 12, .least = 6 },
	{ .title = "GPUS", .cell = gpus_cell, .most = 9, .is_right = true },
	{ .title = "NAME", .cell = name_cell, .most = 12, .wide_most = 20, .least = 6 },
	{ .title = "PRIORITY", .cell = priority_cell, .most = 11, .is_wide_only = true,
		.is_right = true },
	{ .title = "LIMIT", .cell = limit_cell, .most = 8, .is_wide_only = true,
		.is_right = true },
	{ .title = "WAITS", .cell = waits_cell, .clock_title = "SINCE", .most = 11,
		.is_right = true },
	{ .title = "START", .cell = start_cell, .most = 11, .is_right = true },
	{ .title = "WHY", .cell = why_cell, .least = 18 },
	{ .title = NULL },
};
/* clang-format on */

const struct top_list top_queue_list = { queue_columns, walk_queue };
