#include <inttypes.h>

#include "batch_board.h"
#include "batch_report.h"
#include "date_time.h"
#include "retry_policy.h"
#include "parse.h"
#include "report.h"

enum {
	BAR_COLUMNS = 10,
	LABEL_COLUMNS = 40,
	REASON_COLUMNS = 100,
	RUNNING_MAX = 64,
	WAITING_MAX = 20,
	DONE_MAX = 20,
	SECTIONS = 3,
};

/* --- cells ------------------------------------------------------------------------- */

/* Puts @string into the cell, cut to @columns with an ellipsis. */
static void row_put_cut(
	struct table *table, unsigned column, const char *string, size_t columns)
{
	char printable[BATCH_COMMAND_SIZE];
	struct text text = TEXT_ON(printable);
	size_t size = 0;

	text_add_visible(&text, string);
	if (text_columns(printable, text.used) > columns) {
		while (text_columns(printable, size + 1) < columns)
			size++;
		text_copy(printable + size, sizeof(printable) - size, "\xe2\x80\xa6");
	}
	table_put(table, column, printable);
}

/* Begins a row with the number and the name, or the command, of @job. */
static void row_put_job(struct table *table, const struct batch_job *job)
{
	table_row(table);
	table_putf(table, 0, "%" PRIu64, job->number);
	row_put_cut(table, 1, job->name[0] ? job->name : job->command, LABEL_COLUMNS);
}

/* Puts "[#####.....] 12m of 2h00m", or only the time if there is no limit. */
static void row_put_elapsed(
	struct table *table, unsigned column, const struct batch_job *job, int64_t now_ms)
{
	int64_t elapsed_ms = max_i64(0, now_ms - job->started_ms);
	char elapsed[DURATION_SIZE], limit[DURATION_SIZE], bar[BAR_COLUMNS + 1] = "";
	int full = BAR_COLUMNS;

	format_duration(elapsed_ms, elapsed);
	if (job->limit_ms <= 0) {
		table_put(table, column, elapsed);
		return;
	}
	if (elapsed_ms < job->limit_ms)
		full = (int)(elapsed_ms * BAR_COLUMNS / job->limit_ms);
	format_duration(job->limit_ms, limit);
	memset(bar, '.', BAR_COLUMNS);
	memset(bar, '#', (size_t)full);
	table_putf(table, column, "[%s] %s of %s", bar, elapsed, limit);
}

/* Puts the memory that the job uses now, or has used at most, of what it declared. */
static void row_put_memory(
	struct table *table, unsigned column, const struct batch_job *job)
{
	char cell[64];
	struct text text = TEXT_ON(cell);

	if (!job->peak_mib)
		return;
	report_add_size(
		job->state == BATCH_RUNNING ? job->used_mib : job->peak_mib, &text);
	if (job->vram_mib) {
		text_add(&text, " of ");
		report_add_size(job->vram_mib, &text);
	}
	if (job->is_over)
		text_add(&text, ", over");
	table_put(table, column, cell);
	if (job->is_over)
		table_tint(table, column, TINT_YELLOW);
}

/* --- rows -------------------------------------------------------------------------- */

enum { COLUMN_TICKET = 2, COLUMN_GPUS, COLUMN_TIME, COLUMN_MEMORY, COLUMN_WHY = 3 };

/* Puts the id, by which --cancel and the reasons of other jobs name the job. */
static void row_put_ticket(struct table *table, const struct batch_job *job)
{
	uint64_t id = batch_job_id(job);

	if (id)
		table_putf(table, COLUMN_TICKET, "%llu", (unsigned long long)id);
}

static const struct table_column running_columns[] = {
	{ .title = "ENTRY", .is_right = true },
	{ .title = "RUNNING", .least = 10 },
	{ .title = "JOB", .is_right = true, .is_optional = true },
	{ .title = "GPU", .is_optional = true },
	{ .title = "TIME" },
	{ .title = "MEMORY", .is_optional = true },
};

static void row_put_running(
	struct table *table, const struct batch_job *job, int64_t now_ms)
{
	row_put_job(table, job);
	row_put_ticket(table, job);
	table_put(table, COLUMN_GPUS, job->gpus);
	row_put_elapsed(table, COLUMN_TIME, job, now_ms);
	row_put_memory(table, COLUMN_MEMORY, job);
}

static const struct table_column waiting_columns[] = {
	{ .title = "ENTRY", .is_right = true },
	{ .title = "WAITING", .least = 10 },
	{ .title = "JOB", .is_right = true, .is_optional = true },
	{ .title = "WHY", .least = 10 },
};

/* Appends why @job waits, if its process has not sent a reason. */
static void board_add_reason(const struct batch_job *job, struct text *out)
{
	const struct batch_attributes *line = &job->line->attributes;
	const char *after = line->after ? line->after : line->after_ok;

	if (batch_job_id(job))
		text_add(out, "in the queue");
	else if (after)
		text_addf(out, "after %s", after);
	else
		text_add(out, "not in the queue yet");
}

static void row_put_waiting(
	struct table *table, const struct batch_job *job, int64_t now_ms)
{
	char why[BATCH_TEXT_SIZE + 64];
	struct text text = TEXT_ON(why);

	(void)now_ms;
	row_put_job(table, job);
	row_put_ticket(table, job);
	if (job->is_between && !job->reason)
		batch_report_add_retry(job->cause, job->status, &text);
	else if (job->is_between)
		text_addf(&text, "for attempt %" PRIu32 ": ", job->attempt + 1);
	else if (!job->reason)
		board_add_reason(job, &text);
	text_add(&text, job->reason ? job->reason : "");
	row_put_cut(table, COLUMN_WHY, why, REASON_COLUMNS);
}

static const struct table_column done_columns[] = {
	{ .title = "ENTRY", .is_right = true },
	{ .title = "DONE", .least = 10 },
	{ .title = "HOW", .least = 10 },
	{ .title = "TIME", .is_optional = true },
	{ .title = "MEMORY", .is_optional = true },
};

static void row_put_done(struct table *table, const struct batch_job *job, int64_t now_ms)
{
	struct batch_end end = { job->cause, job->status, job->is_by_line,
		job->reason ? job->reason : "" };
	bool is_failed = batch_is_failed(job);
	char how[BATCH_TEXT_SIZE + 64], span[DURATION_SIZE];
	struct text text = TEXT_ON(how);

	(void)now_ms;
	row_put_job(table, job);
	if (batch_is_finished(job))
		text_add(&text, "ok");
	else if (job->is_dropped)
		text_addf(&text, "dropped: %s", end.text);
	else
		batch_report_add_end(&end, &text);
	if (job->is_from_earlier)
		text_add(&text, ", earlier");
	row_put_cut(table, 2, how, REASON_COLUMNS);
	if (is_failed)
		table_tint(table, 2, TINT_RED);
	else if (batch_is_finished(job))
		table_tint(table, 2, TINT_GREEN);
	if (job->ran_ms) {
		format_duration(job->ran_ms, span);
		table_put(table, 3, span);
	}
	row_put_memory(table, 4, job);
}

/* --- sections ---------------------------------------------------------------------- */

struct shown {
	const struct batch_job *job;
};

/* A section of the board: running, waiting or done. */
struct board_section {
	const struct table_column *columns;
	unsigned column_count;
	void (*put)(struct table *table, const struct batch_job *job, int64_t now_ms);
	size_t most;
	struct shown jobs[RUNNING_MAX];
	size_t count, all; /* jobs in ->jobs; jobs of this section in all */
	size_t lines;      /* lines that the section may take */
};

/* Whether @a is shown rather than @b: it failed, or ended later. */
static bool is_more_important(const struct batch_job *a, const struct batch_job *b)
{
	if (batch_is_failed(a) != batch_is_failed(b))
		return batch_is_failed(a);
	return a->ended_ms > b->ended_ms;
}

/* Inserts a job that is done; ->jobs has the most important first, and drops the last if full. */
static void section_keep_done(struct board_section *section, const struct batch_job *job)
{
	size_t at = section->count;

	while (at > 0 && is_more_important(job, section->jobs[at - 1].job))
		at--;
	if (at == section->most)
		return;
	section->count += section->count < section->most;
	memmove(&section->jobs[at + 1], &section->jobs[at],
		(section->count - at - 1) * sizeof(*section->jobs));
	section->jobs[at].job = job;
}

static void section_add(
	struct board_section sections[SECTIONS], const struct batch_job *job)
{
	enum batch_section where = batch_section_of(job);
	struct board_section *section;

	if (where == BATCH_SECTION_NONE)
		return;
	section = &sections[where - BATCH_SECTION_RUNNING];
	section->all++;
	if (where == BATCH_SECTION_DONE)
		section_keep_done(section, job);
	else if (section->count < section->most)
		section->jobs[section->count++].job = job;
}

static void board_collect(
	const struct batch_board *board, struct board_section sections[SECTIONS])
{
	const struct batch_jobs *jobs = board->jobs;

	/* first jobs that are not in the file any more, then the others in its order */
	for (size_t i = 0; i < jobs->count; i++)
		if (!jobs->all[i].line)
			section_add(sections, &jobs->all[i]);
	for (size_t i = 0; i < board->order_count; i++) {
		const struct batch_job *job = batch_jobs_find(jobs, board->order[i]);

		if (job && job->line)
			section_add(sections, job);
	}
}

/* --- heights ----------------------------------------------------------------------- */

/* Returns the lines for a title, the jobs, and the line that says how many are left out. */
static size_t section_wanted_lines(const struct board_section *section)
{
	return section->all ? 1 + section->count + (section->all > section->count) : 0;
}

/*
 * Distributes @rows: first a title and one line to each section, then one line to each in turn, and
 * a second one to the first section, which has the jobs that run.
 */
static void board_share_rows(struct board_section sections[SECTIONS], size_t rows)
{
	bool is_done = false;

	for (size_t i = 0; i < SECTIONS; i++) {
		size_t least = section_wanted_lines(&sections[i]) < 2 ? 0 : 2;

		sections[i].lines = least <= rows ? least : 0;
		rows -= sections[i].lines;
	}
	while (!is_done) {
		is_done = true;
		for (size_t i = 0; i < SECTIONS + 1; i++) {
			struct board_section *section = &sections[i % SECTIONS];

			if (!section->lines || !rows ||
				section->lines >= section_wanted_lines(section))
				continue;
			section->lines++;
			rows--;
			is_done = false;
		}
	}
}

/* --- writing ----------------------------------------------------------------------- */

static int compare_end_times(const void *a, const void *b)
{
	const struct batch_job *x = ((const struct shown *)a)->job;
	const struct batch_job *y = ((const struct shown *)b)->job;

	if (x->ended_ms != y->ended_ms)
		return (x->ended_ms > y->ended_ms) - (x->ended_ms < y->ended_ms);
	return (x->number > y->number) - (x->number < y->number);
}

/* Appends "9,970". */
static void board_add_number(size_t number, struct text *out)
{
	if (number >= 1000) {
		board_add_number(number / 1000, out);
		text_addf(out, ",%03zu", number % 1000);
	} else {
		text_addf(out, "%zu", number);
	}
}

static void section_print(struct board_section *section, const struct table_style *style,
	int64_t now_ms, FILE *out)
{
	struct table table = { .columns = section->columns,
		.column_count = section->column_count };
	size_t shown = section->count;
	char more[64];
	struct text text = TEXT_ON(more);

	if (!section->lines)
		return;
	/* the last line says how many are left out; if there is only one line, it is a job */
	if (section->lines < section_wanted_lines(section))
		shown = section->lines > 2 ? section->lines - 2 : 1;
	if (section->put == row_put_done)
		qsort(section->jobs, shown, sizeof(section->jobs[0]), compare_end_times);
	for (size_t i = 0; i < shown; i++)
		section->put(&table, section->jobs[i].job, now_ms);
	(void)!table_print(&table, style, out);
	table_release(&table);
	if (section->all == shown || section->lines <= shown + 1)
		return;
	text_add(&text, "  \xe2\x80\xa6 and ");
	board_add_number(section->all - shown, &text);
	text_add(&text, " more");
	line_print_cut(more, style, out);
}

static void board_print_head(
	const struct batch_board *board, const struct table_style *style, FILE *out)
{
	struct batch_counts counts = batch_count(board->jobs);
	char line[1024];
	struct text text = TEXT_ON(line);

	text_add_visible(
		&text, strcmp(board->file, "-") == 0 ? "standard input" : board->file);
	text_add(&text, ": ");
	batch_report_add_counts(&counts, true, &text);
	text_addf(&text, ", of %u; since ", counts.all);
	date_time_add_since(board->begun_ms, board->now_ms, &text);
	if (board->is_stopping)
		text_add(&text, "; stopping");
	else if (board->is_watching)
		text_add(&text, "; watching");
	line_print_cut(line, style, out);
}

void batch_board_print(const struct batch_board *board, const struct table_style *style,
	unsigned rows, FILE *out)
{
	struct board_section sections[SECTIONS] = {
		{ running_columns, ARRAY_SIZE(running_columns), row_put_running,
			.most = RUNNING_MAX },
		{ waiting_columns, ARRAY_SIZE(waiting_columns), row_put_waiting,
			.most = WAITING_MAX },
		{ done_columns, ARRAY_SIZE(done_columns), row_put_done,
			.most = DONE_MAX },
	};

	board_collect(board, sections);
	board_share_rows(sections, rows ? rows - 1 : SIZE_MAX);
	board_print_head(board, style, out);
	for (size_t i = 0; i < SECTIONS; i++)
		section_print(&sections[i], style, board->now_ms, out);
}
