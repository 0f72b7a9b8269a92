#include <errno.h>

#include "parse.h"
#include "timeline_colours.h"
#include "timeline_marks.h"
#include "timeline_text.h"
#include "timeline_ticks.h"

enum {
	WIDTH_DEFAULT = 80,
	WIDTH_LEAST = 30,
	WIDTH_MOST = 1000,
	TICK_COLUMNS = 8, /* of a tick with its label */
};

static const double SNAP = 0.2; /* of a cell */

/* --- cells ------------------------------------------------------------------------------ */

/* Returns the character of a cell, and sets *@ret_place. */
static char cell_letter(const struct timeline_cell *cell, unsigned char *ret_place)
{
	double most = 0;
	size_t best = 0;
	const double *time;
	char letter;

	for (size_t place = 0; place < TIMELINE_PLACES; place++) {
		double sum = 0;

		for (unsigned part = 0; part < TIMELINE_PARTS; part++)
			sum += cell->time[place][part];
		if (sum > most) {
			most = sum;
			best = place;
		}
	}
	*ret_place = (unsigned char)(most > 0 ? best : TIMELINE_PLACES);
	if (!(most > 0))
		return '.';
	time = cell->time[best];
	letter = timeline_letter(best);
	if (2 * time[PART_UNSEEN] > most)
		return '?';
	if (2 * time[PART_UNUSED] > most && letter >= 'a' && letter <= 'z')
		return (char)(letter - 'a' + 'A');
	return letter;
}

int timeline_letters(const struct timeline *timeline, const struct timeline_row *row,
	size_t columns, char *letters, unsigned char *places)
{
	struct timeline_cell *cells;

	if (timeline_cells(timeline, row, columns, SNAP, &cells) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < columns; i++)
		letters[i] = cell_letter(&cells[i], &places[i]);
	free(cells);
	return 0;
}

/* --- rows -------------------------------------------------------------------------------- */

static void print_colour(unsigned place, FILE *out)
{
	const struct timeline_colour *colour;

	if (place >= TIMELINE_PLACES) {
		(void)fputs("\033[0m", out);
		return;
	}
	colour = &timeline_colours[timeline_hue(place)];
	(void)fprintf(out, "\033[48;5;%u;38;5;%um", colour->terminal,
		colour->needs_white ? 231u : 16u);
}

/* Prints letters, each on the colour of its user. */
static void print_cells(
	const char *cells, const unsigned char *places, size_t columns, FILE *out)
{
	unsigned now = TIMELINE_PLACES;

	for (size_t i = 0; i < columns; i++) {
		if (places[i] != now)
			print_colour(now = places[i], out);
		(void)fputc(cells[i], out);
	}
	if (now != TIMELINE_PLACES)
		print_colour(TIMELINE_PLACES, out);
}

static void format_label(const struct timeline_row *row, char out[TIMELINE_LABEL_SIZE])
{
	size_t size;

	timeline_format_row(row, out);
	size = strlen(out);
	if (row->is_paused)
		text_copy(out + size, TIMELINE_LABEL_SIZE - size, " paused");
}

static size_t label_width(const struct timeline *timeline)
{
	size_t most = 0;

	for (size_t i = 0; i < timeline->row_count; i++) {
		char label[TIMELINE_LABEL_SIZE];

		format_label(&timeline->rows[i], label);
		if (strlen(label) > most)
			most = strlen(label);
	}
	return most;
}

static int print_rows(const struct timeline *timeline, size_t label, size_t columns,
	bool has_colour, FILE *out)
{
	char cells[WIDTH_MOST];
	unsigned char places[WIDTH_MOST];

	for (size_t i = 0; i < timeline->row_count; i++) {
		char text[TIMELINE_LABEL_SIZE];

		if (timeline_letters(
			    timeline, &timeline->rows[i], columns, cells, places) < 0)
			return -ENOMEM;
		format_label(&timeline->rows[i], text);
		(void)fprintf(out, "%-*s ", (int)label, text);
		if (has_colour)
			print_cells(cells, places, columns, out);
		else
			(void)fwrite(cells, 1, columns, out);
		(void)fputc('\n', out);
	}
	return 0;
}

static void print_axis(
	const struct timeline *timeline, size_t label, size_t columns, FILE *out)
{
	struct timeline_tick ticks[TICKS_MAX];
	char line[WIDTH_MOST + 1];
	size_t count = timeline_ticks(
		timeline->from_ms, timeline->until_ms, columns / TICK_COLUMNS, ticks);

	memset(line, ' ', columns);
	line[columns] = '\0';
	for (size_t i = 0; i < count; i++) {
		size_t at = (size_t)((double)(ticks[i].at_ms - timeline->from_ms) *
				     (double)columns /
				     (double)(timeline->until_ms - timeline->from_ms));
		size_t size = strlen(ticks[i].label);

		if (at + 1 + size > columns)
			continue;
		line[at] = '|';
		memcpy(line + at + 1, ticks[i].label, size);
	}
	for (size_t size = columns; size && line[size - 1] == ' '; size--)
		line[size - 1] = '\0';
	(void)fprintf(out, "%*s %s\n", (int)label, "", line);
}

/* --- the legend ---------------------------------------------------------------------------- */

enum {
	KEY_LETTER,
	KEY_USER,
	KEY_JOBS,
	KEY_HOURS,
	KEY_MOST,
	KEY_SHARE,
	KEY_WAIT,
	KEY_UTILIZATION,
	KEY_UNUSED,
};

static const struct table_column columns_of_legend[] = {
	[KEY_LETTER] = { .title = " " },
	[KEY_USER] = { .title = "USER", .least = 6 },
	[KEY_JOBS] = { .title = "JOBS", .is_right = true, .rank = 2 },
	[KEY_HOURS] = { .title = "GPU-HOURS", .is_right = true },
	[KEY_MOST] = { .title = "UP TO",
		.is_right = true,
		.is_optional = true,
		.rank = 5 },
	[KEY_SHARE] = { .title = "SHARE", .is_right = true, .rank = 3 },
	[KEY_WAIT] = { .title = "WAIT", .is_right = true },
	[KEY_UTILIZATION] = { .title = "UTIL",
		.is_right = true,
		.is_optional = true,
		.rank = 4 },
	[KEY_UNUSED] = { .title = "AT-0%",
		.is_right = true,
		.is_optional = true,
		.rank = 1 },
};

static void put_user(struct table *table, const struct timeline *timeline,
	const struct timeline_user *user, char letter)
{
	char hours[TIMELINE_HOURS_SIZE], most[TIMELINE_HOURS_SIZE];
	int64_t wait_ms = timeline_mean_wait_ms(user);
	int64_t permille =
		timeline_permille(timeline, user->least, timeline_gpus(timeline));
	int busy = timeline_utilization(user);

	timeline_format_hours(user->least, hours);
	timeline_format_hours(user->most, most);
	table_row(table);
	table_putf(table, KEY_LETTER, "%c", letter);
	table_put(table, KEY_USER, user->name);
	table_putf(table, KEY_JOBS, "%llu", (unsigned long long)user->jobs);
	table_put(table, KEY_HOURS, hours);
	if (strcmp(hours, most) != 0)
		table_put(table, KEY_MOST, most);
	if (permille >= 0)
		table_putf(table, KEY_SHARE, "%lld.%lld%%", (long long)permille / 10,
			(long long)permille % 10);
	if (wait_ms >= 0) {
		format_duration(wait_ms, most);
		table_put(table, KEY_WAIT, most);
	}
	if (busy >= 0)
		table_putf(table, KEY_UTILIZATION, "%d%%", busy);
	if (user->unused) {
		timeline_format_hours(user->unused, hours);
		table_put(table, KEY_UNUSED, hours);
	}
}

/* Prints the lines of the table; the first letter of a user's line gets the colour of the user. */
static void print_coloured(const char *lines, const struct timeline *timeline, FILE *out)
{
	for (size_t line = 0; *lines; line++) {
		size_t size = strcspn(lines, "\n");
		bool is_user = line > 0 && line <= timeline->user_count && size;

		if (is_user) {
			print_colour((unsigned)timeline_place(line - 1), out);
			(void)fputc(*lines, out);
			print_colour(TIMELINE_PLACES, out);
		}
		(void)fwrite(lines + is_user, 1, size - is_user, out);
		(void)fputc('\n', out);
		lines += size + (lines[size] == '\n');
	}
}

static int print_legend(
	const struct timeline *timeline, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(columns_of_legend);
	struct table_style plain = { .width = style->width };
	char *lines = NULL;
	size_t size;
	FILE *memory = open_memstream(&lines, &size);
	int r = memory ? 0 : -ENOMEM;

	for (size_t i = 0; i < timeline->user_count; i++)
		put_user(&table, timeline, &timeline->users[i],
			timeline_letter(timeline_place(i)));
	put_user(&table, timeline, &timeline->total, ' ');
	if (r == 0)
		r = table_print(&table, &plain, memory);
	if (memory && fclose(memory) != 0)
		r = -ENOMEM;
	if (r == 0 && style->has_colour)
		print_coloured(lines, timeline, out);
	else if (r == 0)
		(void)fputs(lines, out);
	free(lines);
	table_release(&table);
	return r;
}

/* --- all of it ------------------------------------------------------------------------------ */

static void print_title(const struct timeline *timeline,
	const struct timeline_words *words, const struct table_style *style, FILE *out)
{
	char from[TIMELINE_MOMENT_SIZE], until[TIMELINE_MOMENT_SIZE], line[320];
	uint64_t gpus = timeline_gpus(timeline);
	int64_t permille = timeline_permille(timeline, timeline->total.least, gpus);
	struct text text = TEXT_ON(line);

	timeline_format_date(timeline->from_ms, from);
	timeline_format_date(timeline->until_ms, until);
	if (words->host[0])
		text_addf(&text, "%s: ", words->host);
	if (words->user)
		text_addf(&text, "jobs of %s, ", words->user);
	text_addf(&text, "%s to %s, %llu GPU%s", from, until, (unsigned long long)gpus,
		gpus == 1 ? "" : "s");
	if (permille >= 0)
		text_addf(&text, ", %lld%% leased", (long long)(permille + 5) / 10);
	line_print(line, style, out);
}

static void print_notes(
	const struct timeline_words *words, const struct table_style *style, FILE *out)
{
	char line[128];

	line_print("CAPITALS: at 0% utilization up to the end of the job, or up to now; "
		   "?: the end of the job was not seen",
		style, out);
	if (!words->missing_lines)
		return;
	(void)snprintf(line, sizeof(line),
		"%llu lines of the history could not be written",
		(unsigned long long)words->missing_lines);
	line_print(line, style, out);
}

int timeline_text(const struct timeline *timeline, const struct timeline_words *words,
	const struct table_style *style, FILE *out)
{
	struct table_style fitted = *style;
	size_t label = label_width(timeline), width;
	int r;

	if (!fitted.width)
		fitted.width = WIDTH_DEFAULT;
	width = fitted.width > WIDTH_MOST ? WIDTH_MOST : fitted.width;
	if (width < label + WIDTH_LEAST)
		width = label + WIDTH_LEAST;
	width -= label + 1;
	print_title(timeline, words, &fitted, out);
	(void)fputc('\n', out);
	print_axis(timeline, label, width, out);
	r = print_rows(timeline, label, width, style->has_colour, out);
	(void)fputc('\n', out);
	if (!timeline->user_count)
		line_print("no job had a GPU in this time", &fitted, out);
	else if (r == 0)
		r = print_legend(timeline, &fitted, out);
	if (r == 0 && timeline->user_count)
		print_notes(words, &fitted, out);
	return r;
}
