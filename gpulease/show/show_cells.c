#include "date_time.h"
#include "parse.h"
#include "show_cells.h"
#include "wait_reason.h"

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

void show_put_left(struct table *table, unsigned column, const struct view_holder *job)
{
	if (job->limit_ms > 0 && job->age_ms >= 0)
		show_put_span(table, column, max_i64(0, job->limit_ms - job->age_ms));
}

void show_add_time(struct text *out, int64_t at_ms, int64_t now_ms)
{
	if (at_ms > 0)
		date_time_add_near(at_ms, now_ms, DATE_TIME_SECONDS, out);
}

void show_put_time(struct table *table, unsigned column, int64_t at_ms, int64_t now_ms)
{
	char words[64];
	struct text text = TEXT_ON(words);

	show_add_time(&text, at_ms, now_ms);
	table_put(table, column, words);
}

void show_add_need(const struct need *need, struct text *out)
{
	if (need_is_whole(need))
		return;
	if (need->percent)
		explain_share(need->percent, out);
	if (!need->mib)
		return;
	text_add(out, need->percent ? "+" : "");
	explain_size(need->mib, true, out);
}

int show_and_release(struct table *table, const struct table_style *style, FILE *out)
{
	int r = table_print(table, style, out);

	table_release(table);
	return r;
}

void show_add_date(struct text *line, int64_t at_ms)
{
	date_time_add(at_ms, DATE_TIME_DAY, line);
}
