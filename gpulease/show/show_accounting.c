#include "json_members.h"
#include "show_accounting.h"
#include "show_cells.h"
#include "show_history.h"

enum { NUMBER_SIZE = 32 };

/* Writes hundredths as "12.34". */
static void format_hundredths(uint64_t hundredths, char out[NUMBER_SIZE])
{
	(void)snprintf(out, NUMBER_SIZE, "%llu.%02u",
		(unsigned long long)(hundredths / 100), (unsigned)(hundredths % 100));
}

static uint64_t hundredths_of_hours(uint64_t gpu_ms)
{
	return gpu_ms / 36000;
}

/* --- the table --------------------------------------------------------------------- */

enum {
	SUM_USER,
	SUM_JOBS,
	SUM_ATTEMPTS,
	SUM_RUNNING,
	SUM_HOURS,
	SUM_MOST,
	SUM_WAIT,
	SUM_P95,
	SUM_UTILIZATION,
	SUM_UNUSED,
	SUM_SHARE,
};

static const struct table_column columns[] = {
	[SUM_USER] = { .title = "USER", .least = 6 },
	[SUM_JOBS] = { .title = "JOBS", .is_right = true },
	[SUM_ATTEMPTS] = { .title = "TRIES", .is_right = true, .is_optional = true },
	[SUM_RUNNING] = { .title = "RUNNING", .is_right = true, .is_optional = true },
	[SUM_HOURS] = { .title = "GPU-HOURS", .is_right = true },
	[SUM_MOST] = { .title = "UP TO", .is_right = true, .is_optional = true },
	[SUM_WAIT] = { .title = "WAIT", .is_right = true },
	[SUM_P95] = { .title = "P95", .is_right = true },
	[SUM_UTILIZATION] = { .title = "UTIL", .is_right = true, .is_optional = true },
	[SUM_UNUSED] = { .title = "AT 0%", .is_right = true, .is_optional = true },
	[SUM_SHARE] = { .title = "SHARE", .is_right = true },
};

/* UP TO is shown only if the time is not exact. */
static void sum_put_hours(struct table *table, const struct accounting_row *row)
{
	char least[NUMBER_SIZE], most[NUMBER_SIZE];

	format_hundredths(hundredths_of_hours(row->gpu_least_ms), least);
	format_hundredths(hundredths_of_hours(row->gpu_most_ms), most);
	table_put(table, SUM_HOURS, least);
	if (strcmp(least, most) != 0)
		table_put(table, SUM_MOST, most);
}

static void sum_put_row(struct table *table, const struct accounting *accounting,
	const struct accounting_row *row, const char *user)
{
	int64_t share = accounting_share(accounting, row);
	int busy = accounting_utilization(row);

	table_row(table);
	table_put(table, SUM_USER, user);
	table_putf(table, SUM_JOBS, "%llu", (unsigned long long)row->jobs);
	if (row->attempts != row->jobs)
		table_putf(
			table, SUM_ATTEMPTS, "%llu", (unsigned long long)row->attempts);
	show_put_id(table, SUM_RUNNING, row->running);
	sum_put_hours(table, row);
	show_put_span(table, SUM_WAIT, accounting_mean_wait_ms(row));
	show_put_span(table, SUM_P95, accounting_p95_wait_ms(row));
	if (busy >= 0)
		table_putf(table, SUM_UTILIZATION, "%d%%", busy);
	if (row->has_unused) {
		char unused[NUMBER_SIZE];

		format_hundredths(hundredths_of_hours(row->unused_gpu_ms), unused);
		table_put(table, SUM_UNUSED, unused);
	}
	if (share >= 0)
		table_putf(table, SUM_SHARE, "%lld.%lld%%", (long long)share / 100,
			(long long)share % 100 / 10);
}

/* The period and the GPUs, to which SHARE refers. */
static void accounting_print_period(
	const struct accounting *accounting, const struct table_style *style, FILE *out)
{
	char words[128];
	struct text line = TEXT_ON(words);

	text_add(&line, "from ");
	show_add_date(&line, accounting->from_ms);
	text_add(&line, " to ");
	show_add_date(&line, accounting->until_ms);
	if (accounting->gpus)
		text_addf(&line, " on %u GPU%s", accounting->gpus,
			accounting->gpus == 1 ? "" : "s");
	line_print(words, style, out);
}

int show_accounting(
	const struct accounting *accounting, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(columns);
	int r;

	if (!accounting->count) {
		line_print("no matching job has run", style, out);
		show_gap(&accounting->gap, style, out);
		return 0;
	}
	for (size_t i = 0; i < accounting->count; i++)
		sum_put_row(&table, accounting, &accounting->rows[i],
			accounting->rows[i].user);
	sum_put_row(&table, accounting, &accounting->total, "total");
	for (unsigned column = 0; column < ARRAY_SIZE(columns); column++)
		table_tint(&table, column, TINT_BOLD);
	r = show_and_release(&table, style, out);
	accounting_print_period(accounting, style, out);
	show_gap(&accounting->gap, style, out);
	return r;
}

/* --- JSON -------------------------------------------------------------------------- */

static void member_hundredths(struct json *json, const char *key, int64_t value)
{
	json_key(json, key);
	if (value >= 0)
		json_hundredths(json, (uint64_t)value);
	else
		json_null(json);
}

static void json_put_sums(struct json *json, const struct accounting *accounting,
	const struct accounting_row *row)
{
	member_number(json, "jobs", row->jobs);
	member_number(json, "attempts", row->attempts);
	member_number(json, "running", row->running);
	json_key(json, "gpu_hours_least");
	json_hundredths(json, hundredths_of_hours(row->gpu_least_ms));
	json_key(json, "gpu_hours_most");
	json_hundredths(json, hundredths_of_hours(row->gpu_most_ms));
	member_span(json, "wait_mean_ms", accounting_mean_wait_ms(row));
	member_span(json, "wait_p95_ms", accounting_p95_wait_ms(row));
	member_span(json, "utilization_mean_percent", accounting_utilization(row));
	member_hundredths(json, "unused_gpu_hours",
		row->has_unused ? (int64_t)hundredths_of_hours(row->unused_gpu_ms) : -1);
	member_hundredths(
		json, "machine_share_percent", accounting_share(accounting, row));
}

void show_accounting_json(const struct accounting *accounting, int64_t now_ms,
	const char *directory, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "accounting", now_ms, directory);
	member_time(&json, "since_unix_ms", accounting->from_ms);
	member_time(&json, "until_unix_ms", accounting->until_ms);
	member_number(&json, "gpus", accounting->gpus);
	json_key(&json, "users");
	json_begin_array(&json);
	for (size_t i = 0; i < accounting->count; i++) {
		const struct accounting_row *row = &accounting->rows[i];

		json_begin_object(&json);
		member_text(&json, "user", row->user);
		member_number(&json, "uid", row->uid);
		json_put_sums(&json, accounting, row);
		json_end(&json);
	}
	json_end(&json);
	json_key(&json, "total");
	json_begin_object(&json);
	json_put_sums(&json, accounting, &accounting->total);
	json_end(&json);
	member_gap(&json, &accounting->gap);
	document_finish(&json);
}

/* --- for spreadsheets -------------------------------------------------------------- */

/* Prints a field of any bytes, quoted if it has a comma or a quote. */
static void csv_write_field(const char *text, FILE *out)
{
	char printable[4 * USER_SIZE];
	struct text field = TEXT_ON(printable);

	text_add_visible(&field, text);
	if (!strpbrk(printable, ",\"")) {
		(void)fputs(printable, out);
		return;
	}
	(void)fputc('"', out);
	for (const char *at = printable; *at; at++)
		(void)fprintf(out, *at == '"' ? "\"\"" : "%c", *at);
	(void)fputc('"', out);
}

static void csv_write_hundredths(int64_t value, FILE *out)
{
	char number[NUMBER_SIZE] = "";

	if (value >= 0)
		format_hundredths((uint64_t)value, number);
	(void)fprintf(out, ",%s", number);
}

static void csv_write_seconds(int64_t ms, FILE *out)
{
	if (ms < 0)
		(void)fputc(',', out);
	else
		(void)fprintf(
			out, ",%lld.%03lld", (long long)ms / 1000, (long long)ms % 1000);
}

static void csv_write_row(
	const struct accounting *accounting, const struct accounting_row *row, FILE *out)
{
	int busy = accounting_utilization(row);

	csv_write_field(row->user, out);
	(void)fprintf(out, ",%u,%llu,%llu,%llu", row->uid, (unsigned long long)row->jobs,
		(unsigned long long)row->attempts, (unsigned long long)row->running);
	csv_write_hundredths((int64_t)hundredths_of_hours(row->gpu_least_ms), out);
	csv_write_hundredths((int64_t)hundredths_of_hours(row->gpu_most_ms), out);
	csv_write_seconds(accounting_mean_wait_ms(row), out);
	csv_write_seconds(accounting_p95_wait_ms(row), out);
	if (busy >= 0)
		(void)fprintf(out, ",%d", busy);
	else
		(void)fputc(',', out);
	csv_write_hundredths(accounting_share(accounting, row), out);
	csv_write_hundredths(
		row->has_unused ? (int64_t)hundredths_of_hours(row->unused_gpu_ms) : -1,
		out);
	(void)fputs("\r\n", out);
}

void show_accounting_csv(const struct accounting *accounting, FILE *out)
{
	(void)fputs("user,uid,jobs,attempts,running,gpu_hours_least,gpu_hours_most,"
		    "wait_mean_seconds,wait_p95_seconds,utilization_mean_percent,"
		    "machine_share_percent,unused_gpu_hours\r\n",
		out);
	for (size_t i = 0; i < accounting->count; i++)
		csv_write_row(accounting, &accounting->rows[i], out);
}
