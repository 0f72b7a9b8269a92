#include <inttypes.h>

#include "batch_board_parts.h"
#include "care.h"
#include "parse.h"
#include "report.h"

enum {
	BAR_COLUMNS = 10,
	LABEL_COLUMNS = 40,
	REASON_COLUMNS = 100,
	RUNNING_MAX = 64,
	WAITING_MAX = 20,
	DONE_MAX = 20,
	PARTS = 3,
};

/* --- what there is ----------------------------------------------------------------- */

enum batch_part batch_part_of(const struct batch_job *job)
{
	if (job->state == BATCH_ENDED)
		return job->line || !job->is_of_before ? BATCH_PART_DONE
						       : BATCH_PART_NONE;
	if (job->state == BATCH_RUNNING)
		return job->is_between ? BATCH_PART_WAITING : BATCH_PART_RUNNING;
	return job->line ? BATCH_PART_WAITING : BATCH_PART_NONE;
}

static void count_end(const struct batch_job *job, struct batch_counts *counts)
{
	if (job->is_dropped)
		counts->dropped++;
	else if (batch_is_finished(job))
		counts->finished++;
	else if (job->cause == BATCH_BY_CANCEL)
		counts->cancelled++;
	else
		counts->failed++;
}

struct batch_counts batch_count(const struct batch_jobs *jobs)
{
	struct batch_counts counts = { .all = 0 };

	for (size_t i = 0; i < jobs->count; i++) {
		enum batch_part part = batch_part_of(&jobs->all[i]);

		counts.all += part != BATCH_PART_NONE;
		counts.running += part == BATCH_PART_RUNNING;
		counts.waiting += part == BATCH_PART_WAITING;
		if (part == BATCH_PART_DONE)
			count_end(&jobs->all[i], &counts);
	}
	return counts;
}

/* --- cells ------------------------------------------------------------------------- */

void batch_add_printable(const char *string, struct text *out)
{
	text_add_printable(out, string, strlen(string));
}

/* Puts @string, cut to @columns. */
static void put_cut(
	struct table *table, unsigned column, const char *string, size_t columns)
{
	char printable[BATCH_COMMAND_SIZE];
	struct text text = TEXT_ON(printable);
	size_t size = 0;

	batch_add_printable(string, &text);
	if (text_columns(printable, text.used) > columns) {
		while (text_columns(printable, size + 1) < columns)
			size++;
		text_copy(printable + size, sizeof(printable) - size, "\xe2\x80\xa6");
	}
	table_put(table, column, printable);
}

static void put_job(struct table *table, const struct batch_job *job)
{
	table_row(table);
	table_putf(table, 0, "%" PRIu64, job->number);
	put_cut(table, 1, job->name[0] ? job->name : job->command, LABEL_COLUMNS);
}

/* "[#####.....] 12m of 2h00m" */
static void put_elapsed(
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

static void put_memory(struct table *table, unsigned column, const struct batch_job *job)
{
	char cell[64];
	struct text text = TEXT_ON(cell);

	if (!job->peak_mib)
		return;
	report_add_size(job->peak_mib, &text);
	if (job->vram_mib) {
		text_add(&text, " of ");
		report_add_size(job->vram_mib, &text);
	}
	table_put(table, column, cell);
	if (job->vram_mib && job->peak_mib > job->vram_mib)
		table_tint(table, column, TINT_YELLOW);
}

/* --- the parts --------------------------------------------------------------------- */

enum { COLUMN_TICKET = 2, COLUMN_GPUS, COLUMN_TIME, COLUMN_MEMORY, COLUMN_WHY = 3 };

/* What --cancel and its like call it, and other tickets' reasons. */
static void put_ticket(struct table *table, const struct batch_job *job)
{
	if (job->ticket)
		table_putf(table, COLUMN_TICKET, "%llu", (unsigned long long)job->ticket);
}

static const struct table_column running_columns[] = {
	{ .title = "JOB", .is_right = true },
	{ .title = "RUNNING", .least = 10 },
	{ .title = "TICKET", .is_right = true, .is_optional = true },
	{ .title = "GPU", .is_optional = true },
	{ .title = "TIME" },
	{ .title = "MEMORY", .is_optional = true },
};

static void put_running(struct table *table, const struct batch_job *job, int64_t now_ms)
{
	put_job(table, job);
	put_ticket(table, job);
	table_put(table, COLUMN_GPUS, job->gpus);
	put_elapsed(table, COLUMN_TIME, job, now_ms);
	put_memory(table, COLUMN_MEMORY, job);
}

static const struct table_column waiting_columns[] = {
	{ .title = "JOB", .is_right = true },
	{ .title = "WAITING", .least = 10 },
	{ .title = "TICKET", .is_right = true, .is_optional = true },
	{ .title = "WHY", .least = 10 },
};

/* Why it waits, where nobody has said so. */
static void add_own_reason(const struct batch_job *job, struct text *out)
{
	const struct batch_attributes *line = &job->line->attributes;
	const char *after = line->after ? line->after : line->after_ok;

	if (job->ticket)
		text_add(out, "in the queue");
	else if (after)
		text_addf(out, "after %s", after);
	else
		text_add(out, "not in the queue yet");
}

static void put_waiting(struct table *table, const struct batch_job *job, int64_t now_ms)
{
	char why[BATCH_TEXT_SIZE + 64];
	struct text text = TEXT_ON(why);

	(void)now_ms;
	put_job(table, job);
	put_ticket(table, job);
	if (job->is_between && !job->reason)
		batch_add_return(job->cause, job->status, &text);
	else if (job->is_between)
		text_addf(&text, "for attempt %" PRIu32 ": ", job->attempt + 1);
	else if (!job->reason)
		add_own_reason(job, &text);
	text_add(&text, job->reason ? job->reason : "");
	put_cut(table, COLUMN_WHY, why, REASON_COLUMNS);
}

static const struct table_column done_columns[] = {
	{ .title = "JOB", .is_right = true },
	{ .title = "DONE", .least = 10 },
	{ .title = "HOW", .least = 10 },
	{ .title = "TIME", .is_optional = true },
	{ .title = "MEMORY", .is_optional = true },
};

static void put_done(struct table *table, const struct batch_job *job, int64_t now_ms)
{
	const char *reason = job->reason ? job->reason : "";
	bool is_failed = batch_is_failed(job);
	char how[BATCH_TEXT_SIZE + 64], span[DURATION_SIZE];
	struct text text = TEXT_ON(how);

	(void)now_ms;
	put_job(table, job);
	if (batch_is_finished(job))
		text_add(&text, "ok");
	else if (job->is_dropped)
		text_addf(&text, "dropped: %s", reason);
	else
		batch_add_end(job->cause, job->status, reason, &text);
	if (job->is_of_before)
		text_add(&text, ", earlier");
	put_cut(table, 2, how, REASON_COLUMNS);
	if (is_failed)
		table_tint(table, 2, TINT_RED);
	else if (batch_is_finished(job))
		table_tint(table, 2, TINT_GREEN);
	if (job->ran_ms) {
		format_duration(job->ran_ms, span);
		table_put(table, 3, span);
	}
	put_memory(table, 4, job);
}

/* --- which of them ----------------------------------------------------------------- */

struct shown {
	const struct batch_job *job;
};

struct part {
	const struct table_column *columns;
	unsigned column_count;
	void (*put)(struct table *table, const struct batch_job *job, int64_t now_ms);
	size_t most;
	struct shown jobs[RUNNING_MAX];
	size_t count, all; /* of those at ->jobs; of all there are */
	size_t lines;      /* that it may take */
};

/* Whether @a is to be on the board rather than @b: it failed, or ended later. */
static bool is_worthier(const struct batch_job *a, const struct batch_job *b)
{
	if (batch_is_failed(a) != batch_is_failed(b))
		return batch_is_failed(a);
	return a->ended_ms > b->ended_ms;
}

/* Those that are done stand at ->jobs with the worthiest first. */
static void keep_done(struct part *part, const struct batch_job *job)
{
	size_t at = part->count;

	while (at > 0 && is_worthier(job, part->jobs[at - 1].job))
		at--;
	if (at == part->most)
		return;
	part->count += part->count < part->most;
	memmove(&part->jobs[at + 1], &part->jobs[at],
		(part->count - at - 1) * sizeof(*part->jobs));
	part->jobs[at].job = job;
}

static void take(struct part parts[PARTS], const struct batch_job *job)
{
	enum batch_part where = batch_part_of(job);
	struct part *part;

	if (where == BATCH_PART_NONE)
		return;
	part = &parts[where - BATCH_PART_RUNNING];
	part->all++;
	if (where == BATCH_PART_DONE)
		keep_done(part, job);
	else if (part->count < part->most)
		part->jobs[part->count++].job = job;
}

static void collect(const struct batch_board *board, struct part parts[PARTS])
{
	const struct batch_jobs *jobs = board->jobs;

	/* those that the file has no longer, and then as it has them */
	for (size_t i = 0; i < jobs->count; i++)
		if (!jobs->all[i].line)
			take(parts, &jobs->all[i]);
	for (size_t i = 0; i < board->order_count; i++) {
		const struct batch_job *job = batch_jobs_find(jobs, board->order[i]);

		if (job && job->line)
			take(parts, job);
	}
}

/* --- how much of them -------------------------------------------------------------- */

/* The lines that all of it takes: a title, the jobs, and how many there are more. */
static size_t wanted_lines(const struct part *part)
{
	return part->all ? 1 + part->count + (part->all > part->count) : 0;
}

/* Shares @rows out: a title and a line to each, then in turn, two at a time to the first. */
static void share_rows(struct part parts[PARTS], size_t rows)
{
	bool is_done = false;

	for (size_t i = 0; i < PARTS; i++) {
		size_t least = wanted_lines(&parts[i]) < 2 ? 0 : 2;

		parts[i].lines = least <= rows ? least : 0;
		rows -= parts[i].lines;
	}
	while (!is_done) {
		is_done = true;
		for (size_t i = 0; i < PARTS + 1; i++) {
			struct part *part = &parts[i % PARTS];

			if (!part->lines || !rows || part->lines >= wanted_lines(part))
				continue;
			part->lines++;
			rows--;
			is_done = false;
		}
	}
}

/* --- writing ----------------------------------------------------------------------- */

static int compare_ends(const void *a, const void *b)
{
	const struct batch_job *x = ((const struct shown *)a)->job;
	const struct batch_job *y = ((const struct shown *)b)->job;

	if (x->ended_ms != y->ended_ms)
		return (x->ended_ms > y->ended_ms) - (x->ended_ms < y->ended_ms);
	return (x->number > y->number) - (x->number < y->number);
}

/* "9,970" */
static void add_number(size_t number, struct text *out)
{
	if (number >= 1000) {
		add_number(number / 1000, out);
		text_addf(out, ",%03zu", number % 1000);
	} else {
		text_addf(out, "%zu", number);
	}
}

static void print_part(
	struct part *part, const struct table_style *style, int64_t now_ms, FILE *out)
{
	struct table table = { .columns = part->columns,
		.column_count = part->column_count };
	size_t shown = part->count;
	char more[64];
	struct text text = TEXT_ON(more);

	if (!part->lines)
		return;
	/* the last line says how many there are more; where there is one only, it is a job */
	if (part->lines < wanted_lines(part))
		shown = part->lines > 2 ? part->lines - 2 : 1;
	if (part->put == put_done)
		qsort(part->jobs, shown, sizeof(part->jobs[0]), compare_ends);
	for (size_t i = 0; i < shown; i++)
		part->put(&table, part->jobs[i].job, now_ms);
	(void)!table_print(&table, style, out);
	table_release(&table);
	if (part->all == shown || part->lines <= shown + 1)
		return;
	text_add(&text, "  \xe2\x80\xa6 and ");
	add_number(part->all - shown, &text);
	text_add(&text, " more");
	line_print_cut(more, style, out);
}

static void print_head(
	const struct batch_board *board, const struct table_style *style, FILE *out)
{
	struct batch_counts counts = batch_count(board->jobs);
	char line[1024];
	struct text text = TEXT_ON(line);

	batch_add_printable(
		strcmp(board->file, "-") == 0 ? "standard input" : board->file, &text);
	text_add(&text, ": ");
	batch_add_counts(&counts, true, &text);
	text_addf(&text, ", of %u; since ", counts.all);
	batch_add_since(board->begun_ms, board->now_ms, &text);
	if (board->is_stopping)
		text_add(&text, "; stopping");
	else if (board->is_watching)
		text_add(&text, "; watching");
	line_print_cut(line, style, out);
}

void batch_board_print(const struct batch_board *board, const struct table_style *style,
	unsigned rows, FILE *out)
{
	struct part parts[PARTS] = {
		{ running_columns, ARRAY_SIZE(running_columns), put_running,
			.most = RUNNING_MAX },
		{ waiting_columns, ARRAY_SIZE(waiting_columns), put_waiting,
			.most = WAITING_MAX },
		{ done_columns, ARRAY_SIZE(done_columns), put_done, .most = DONE_MAX },
	};

	collect(board, parts);
	share_rows(parts, rows ? rows - 1 : SIZE_MAX);
	print_head(board, style, out);
	for (size_t i = 0; i < PARTS; i++)
		print_part(&parts[i], style, board->now_ms, out);
}
