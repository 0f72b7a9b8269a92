/* Tables of who waits and of what has ended. */
#include <time.h>

#include "parse.h"
#include "show_parts.h"

enum { SAME_END_MS = 2000 }; /* an end known so closely is known */

/* The time of day, with the date where that is another than at @now_ms. */
static void put_time(struct table *table, unsigned column, int64_t at_ms, int64_t now_ms)
{
	time_t at = (time_t)(at_ms / 1000), now = (time_t)(now_ms / 1000);
	struct tm then, today;
	char text[64];
	bool is_today;

	if (at_ms <= 0 || !localtime_r(&at, &then) || !localtime_r(&now, &today))
		return;
	is_today = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
	if (strftime(text, sizeof(text), is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M", &then))
		table_put(table, column, text);
}

/* --- the queue --------------------------------------------------------------------- */

enum {
	JOB_POSITION,
	JOB_TICKET,
	JOB_USER,
	JOB_GPUS,
	JOB_PRIORITY,
	JOB_SINCE,
	JOB_WAITS,
	JOB_NAME,
	JOB_WHY,
};

static const struct table_column job_columns[] = {
	[JOB_POSITION] = { .title = "POS", .is_right = true },
	[JOB_TICKET] = { .title = "TICKET", .is_right = true },
	[JOB_USER] = { .title = "USER", .least = 6 },
	[JOB_GPUS] = { .title = "GPUS", .is_right = true },
	[JOB_PRIORITY] = { .title = "PRIO", .is_right = true, .is_optional = true },
	[JOB_SINCE] = { .title = "SINCE" },
	[JOB_WAITS] = { .title = "WAITS", .is_right = true },
	[JOB_NAME] = { .title = "NAME", .is_optional = true, .least = 6 },
	[JOB_WHY] = { .title = "WHY", .least = 16 },
};

/* "2", "0.5", "18G", "2x18G" */
static void put_wish(struct table *table, const struct view_job *job)
{
	char wish[MIB_TEXT_SIZE + 24];
	struct text text = TEXT_ON(wish);
	bool is_whole = need_is_whole(&job->need);

	if (is_whole || job->gpus != 1)
		text_addf(&text, is_whole ? "%u" : "%ux", job->gpus);
	show_add_need(&job->need, &text);
	table_put(table, JOB_GPUS, wish);
}

static bool has_priorities(const struct view *view)
{
	for (size_t i = 0; i < view->job_count; i++)
		if (view->jobs[i].priority)
			return true;
	return false;
}

static void put_job(
	struct table *table, const struct view *view, size_t at, bool has_priority)
{
	const struct view_job *job = &view->jobs[at];

	table_row(table);
	table_putf(table, JOB_POSITION, "%zu", at + 1);
	show_put_id(table, JOB_TICKET, job->ticket);
	table_put(table, JOB_USER, job->user);
	put_wish(table, job);
	if (has_priority)
		table_putf(table, JOB_PRIORITY, "%lld", (long long)job->priority);
	put_time(table, JOB_SINCE, view->real_ms - job->waits_ms, view->real_ms);
	show_put_span(table, JOB_WAITS, job->waits_ms);
	table_put(table, JOB_NAME, job->name);
	table_put(table, JOB_WHY, job->why);
}

int show_queue(const struct view *view, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(job_columns);
	bool has_priority = has_priorities(view);
	int r;

	if (!view->job_count) {
		line_print("nobody waits", style, out);
		return 0;
	}
	for (size_t i = 0; i < view->job_count; i++)
		put_job(&table, view, i, has_priority);
	r = show_and_release(&table, style, out);
	if (view->has_more_jobs)
		line_print("more wait behind them", style, out);
	return r;
}

/* --- the history ------------------------------------------------------------------- */

enum {
	END_TICKET,
	END_USER,
	END_GPUS,
	END_STARTED,
	END_RAN,
	END_HOW,
	END_STATUS,
	END_NAME,
	END_COMMAND,
};

static const struct table_column end_columns[] = {
	[END_TICKET] = { .title = "TICKET", .is_right = true },
	[END_USER] = { .title = "USER", .least = 6 },
	[END_GPUS] = { .title = "GPUS", .least = 6 },
	[END_STARTED] = { .title = "STARTED" },
	[END_RAN] = { .title = "RAN", .is_right = true },
	[END_HOW] = { .title = "HOW", .least = 10 },
	[END_STATUS] = { .title = "STATUS", .is_right = true, .is_optional = true },
	[END_NAME] = { .title = "NAME", .is_optional = true, .least = 6 },
	[END_COMMAND] = { .title = "COMMAND", .least = 8 },
};

bool ended_span_ms(const struct history_end *end, int64_t *ret_least, int64_t *ret_most)
{
	if (end->since_ms <= 0 || end->gone_ms < end->since_ms)
		return false;
	*ret_most = end->gone_ms - end->since_ms;
	*ret_least = min_i64(*ret_most, max_i64(0, end->alive_ms - end->since_ms));
	return true;
}

const char *ended_how(const struct history_end *end)
{
	return end->how[0] ? end->how : "ended";
}

/* Who first looked long after the end knows no more than that it did not run longer. */
static void put_ran(struct table *table, const struct history_end *end)
{
	char text[DURATION_SIZE];
	int64_t least, most;

	if (!ended_span_ms(end, &least, &most))
		return;
	format_duration(most, text);
	table_putf(
		table, END_RAN, "%s%s", most - least > SAME_END_MS ? "up to " : "", text);
}

static void put_how(struct table *table, const struct history_end *end)
{
	static const struct {
		const char *how, *words;
	} known[] = {
		{ "", "ended" },
		{ "limit", "time limit" },
		{ "cancel", "cancelled" },
		{ "lingered", "given up" },
		{ "reboot", "reboot" },
	};
	const char *words = end->how;

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(end->how, known[i].how) == 0)
			words = known[i].words;
	table_putf(table, END_HOW, "%s%s%s", words, end->by[0] ? " by " : "", end->by);
}

static void put_end(struct table *table, const struct history_end *end, int64_t now_ms)
{
	table_row(table);
	show_put_id(table, END_TICKET, end->ticket);
	table_put(table, END_USER, end->user);
	table_put(table, END_GPUS, end->gpus);
	put_time(table, END_STARTED, end->since_ms, now_ms);
	put_ran(table, end);
	put_how(table, end);
	table_put(table, END_STATUS, end->status);
	table_put(table, END_NAME, end->name);
	table_put(table, END_COMMAND, end->command);
}

int show_history(const struct history_end *ends, size_t count, int64_t now_ms,
	const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(end_columns);

	if (!count) {
		line_print("nothing has ended yet", style, out);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		put_end(&table, &ends[i], now_ms);
	return show_and_release(&table, style, out);
}
