#include "accounting.h"
#include "clock.h"
#include "json_members.h"
#include "parse.h"
#include "report.h"
#include "show_cells.h"
#include "show_history.h"
#include "view.h"
#include "wait_reason.h"

enum { SAME_END_MS = 2000 }; /* an end that is known to within this counts as exact */

enum {
	END_JOB,
	END_ATTEMPT,
	END_USER,
	END_GPUS,
	END_STATE,
	END_STARTED,
	END_WAITED,
	END_RAN,
	END_PEAK,
	END_UTILIZATION,
	END_UNUSED,
	END_STATUS,
	END_NAME,
	END_COMMAND,
};

static const struct table_column end_columns[] = {
	[END_JOB] = { .title = "JOB", .is_right = true },
	[END_ATTEMPT] = { "TRY", .is_right = true, .is_optional = true, .rank = 1 },
	[END_USER] = { .title = "USER", .good = 8, .least = 6 },
	[END_GPUS] = { .title = "GPUS", .good = 8, .least = 6 },
	[END_STATE] = { .title = "STATE", .good = 18, .least = 9 },
	[END_STARTED] = { .title = "STARTED", .rank = 3 },
	[END_WAITED] = { .title = "WAITED", .is_right = true, .rank = 6 },
	[END_RAN] = { .title = "RAN", .is_right = true, .rank = 2 },
	[END_PEAK] = { "PEAK", .is_right = true, .is_optional = true, .rank = 4 },
	[END_UTILIZATION] = { "UTIL", .is_right = true, .is_optional = true, .rank = 5 },
	[END_UNUSED] = { "AT 0%", .is_right = true, .is_optional = true, .rank = 7 },
	[END_STATUS] = { .title = "STATUS", .is_right = true, .is_optional = true },
	[END_NAME] = { .title = "NAME", .is_optional = true, .good = 12, .least = 6 },
	[END_COMMAND] = { .title = "COMMAND", .good = 14, .least = 8 },
};

bool ended_span_ms(const struct history_end *end, int64_t *ret_least, int64_t *ret_most)
{
	if (end->since_ms <= 0 || end->gone_ms < end->since_ms)
		return false;
	*ret_most = end->gone_ms - end->since_ms;
	*ret_least = min_i64(*ret_most, max_i64(0, end->alive_ms - end->since_ms));
	return true;
}

/* Returns the recorded way in which it ended; "ended" if none is recorded. */
static const char *ended_how(const struct history_end *end)
{
	return end->how[0] ? end->how : "ended";
}

void ended_add_ran(const struct history_end *end, struct text *out)
{
	char span[DURATION_SIZE];
	int64_t least, most;

	if (!ended_span_ms(end, &least, &most))
		return;
	format_duration(most, span);
	text_addf(out, "%s%s", most - least > SAME_END_MS ? "up to " : "", span);
}

void ended_add_state(const struct history_end *end, struct text *out)
{
	static const struct {
		const char *how, *words;
	} known[] = {
		{ HISTORY_LINGERED, ", given up" },
		{ HISTORY_REBOOT, " by reboot" },
		{ HISTORY_UNUSED, ", unused" },
	};

	text_add(out, end_state_names[history_state(end)]);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcmp(end->how, known[i].how) == 0)
			text_add(out, known[i].words);
	if (end->by[0])
		text_addf(out, " by %s", end->by);
}

static void end_put_state(struct table *table, const struct history_end *end)
{
	static const enum table_tint tints[END_STATES] = {
		[END_FINISHED] = TINT_GREEN,
		[END_FAILED] = TINT_RED,
		[END_CANCELLED] = TINT_YELLOW,
		[END_TIMED_OUT] = TINT_YELLOW,
		[END_OOM] = TINT_RED,
		[END_PREEMPTED] = TINT_YELLOW,
		[END_REQUEUED] = TINT_YELLOW,
		[END_LOST] = TINT_RED,
	};
	char words[64 + USER_SIZE];
	struct text text = TEXT_ON(words);

	ended_add_state(end, &text);
	table_put(table, END_STATE, words);
	table_tint(table, END_STATE, tints[history_state(end)]);
}

/* Reads the next number in a list such as "18000,17990" and moves *@list on.  False at the end. */
static bool list_next_number(const char **list, uint64_t *ret)
{
	while (**list) {
		size_t size = strcspn(*list, ",:");
		char word[16];

		(void)snprintf(word, sizeof(word), "%.*s",
			(int)min_i64((int64_t)size, 15), *list);
		/* of "0:1", only the GPU before the colon */
		*list += size + strcspn(*list + size, ",");
		*list += **list == ',';
		if (parse_u64(word, UINT32_MAX, ret, NULL) == 0)
			return true;
	}
	return false;
}

uint64_t ended_peak_mib(const struct history_end *end)
{
	const char *list = end->peaks;
	uint64_t mib, most = 0;

	while (list_next_number(&list, &mib))
		most = mib > most ? mib : most;
	return most;
}

/*
 * Puts when the event was and what it is; of a window also from when to when, and for which users.
 */
static void event_put_row(
	struct table *table, const struct history_end *end, int64_t now_ms)
{
	enum end_state state = history_state(end);
	struct window window = { .from_ms = end->since_ms, .until_ms = end->until_ms };
	char words[VIEW_WHY_SIZE];
	struct text text = TEXT_ON(words);
	int64_t boot_ms = clock_boot_ms();

	text_copy(window.but, sizeof(window.but), end->but);
	text_copy(window.reason, sizeof(window.reason), end->command);
	window_place(&window, 0, now_ms, boot_ms);
	table_row(table);
	table_put(table, END_USER, end->user);
	table_put(table, END_GPUS, end->gpus);
	table_put(table, END_STATE, end_state_names[state]);
	show_put_time(table, END_STARTED, end->gone_ms, now_ms);
	if (state == END_WINDOW_SET || state == END_WINDOW_REMOVED)
		explain_window(&window, end->gone_ms - now_ms + boot_ms, &text);
	else
		text_add(&text, end->command);
	table_put(table, END_COMMAND, words);
}

static void end_put_row(
	struct table *table, const struct history_end *end, int64_t now_ms)
{
	uint64_t peak_mib = ended_peak_mib(end);
	char words[64];
	struct text ran = TEXT_ON(words);
	unsigned mean, peak;
	int status = history_status(end);

	table_row(table);
	show_put_id(table, END_JOB, end->ticket);
	show_put_attempt(table, END_ATTEMPT, end->attempt);
	table_put(table, END_USER, end->user);
	table_put(table, END_GPUS, end->gpus);
	end_put_state(table, end);
	show_put_time(table, END_STARTED, end->since_ms, now_ms);
	show_put_span(table, END_WAITED, end->waited_ms);
	ended_add_ran(end, &ran);
	table_put(table, END_RAN, words);
	if (peak_mib) {
		struct text size = TEXT_ON(words);

		report_add_size(peak_mib, &size);
		table_put(table, END_PEAK, words);
	}
	if (ended_utilization(end, &mean, &peak))
		table_putf(table, END_UTILIZATION, "%u%%", mean);
	if (end->use_samples && end->unused_ms > 0)
		show_put_span(table, END_UNUSED, end->unused_ms);
	if (status >= 0)
		table_putf(table, END_STATUS, "%d", status);
	table_put(table, END_NAME, end->name);
	table_put(table, END_COMMAND, end->command);
}

int show_history(const struct history_end *ends, size_t count, int64_t now_ms,
	const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(end_columns);

	if (!count) {
		line_print("no job has ended yet", style, out);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		(history_is_event(&ends[i]) ? event_put_row : end_put_row)(
			&table, &ends[i], now_ms);
	return show_and_release(&table, style, out);
}

void show_gap(const struct history_gap *gap, const struct table_style *style, FILE *out)
{
	char words[160];
	struct text line = TEXT_ON(words);

	if (!gap->missing)
		return;
	text_addf(&line, "%llu line%s of the history could not be written, the last on ",
		(unsigned long long)gap->missing, gap->missing == 1 ? "" : "s");
	show_add_date(&line, gap->last_ms);
	line_print(words, style, out);
}

/* --- JSON -------------------------------------------------------------------------- */

/* Prints the numbers of a list such as "0,3"; anything else in it is left out. */
static void json_put_numbers(struct json *json, const char *key, const char *list)
{
	uint64_t number;

	json_key(json, key);
	json_begin_array(json);
	while (list_next_number(&list, &number))
		json_unsigned(json, number);
	json_end(json);
}

static void json_put_gpus(struct json *json, const struct history_end *end)
{
	const char *colon = strchr(end->gpus, ':'); /* "0:1", an instance */
	uint32_t percent = end->share_percent;
	uint64_t device;
	bool is_instance = colon && parse_u64(colon + 1, UINT32_MAX, &device, NULL) == 0;

	json_put_numbers(json, "gpus", end->gpus);
	member_number_if(json, "instance", is_instance, is_instance ? device : 0);
	member_number(json, "gpu_count", history_gpu_count(end));
	member_share(json, "share", percent && percent < 100, percent);
	member_number_if(json, "vram_mib", end->vram_mib, end->vram_mib);
}

static void json_put_use(struct json *json, const struct history_end *end)
{
	unsigned mean = 0, peak = 0;
	bool is_known = ended_utilization(end, &mean, &peak);
	int64_t least, most;

	json_put_numbers(json, "peak_mib", end->peaks);
	member_bool(json, "spans_run", end->spans_run);
	member_number_if(json, "utilization_mean_percent", is_known, mean);
	member_number_if(json, "utilization_peak_percent", is_known, peak);
	member_span(json, "unused_ms", end->use_samples ? end->unused_ms : -1);
	member_span(
		json, "unused_at_end_ms", end->use_samples ? end->unused_at_end_ms : -1);
	json_key(json, "gpu_seconds");
	if (ended_span_ms(end, &least, &most))
		json_hundredths(json,
			ended_gpu_ms(end, end->since_ms, end->since_ms + least) / 10);
	else
		json_null(json);
	member_bool(json, "log_is_full", end->log_is_full);
}

void json_put_end(struct json *json, const struct history_end *end)
{
	int64_t least = -1, most = -1;
	int status = history_status(end);

	(void)ended_span_ms(end, &least, &most);
	json_begin_object(json);
	member_number(json, "ticket", end->ticket);
	member_number(json, "attempt", end->attempt ? end->attempt : 1);
	member_name(json, end->name, !job_name_is_whole(end->name, end->name_hash));
	member_text(json, "user", end->user);
	member_number(json, "uid", end->uid);
	json_put_gpus(json, end);
	member_text(json, "state", end_state_names[history_state(end)]);
	member_span(json, "waited_ms", end->waited_ms);
	member_time(json, "started_unix_ms", end->since_ms);
	member_time(json, "alive_unix_ms", end->alive_ms);
	member_time(json, "gone_unix_ms", end->gone_ms);
	member_span(json, "ran_at_least_ms", least);
	member_span(json, "ran_at_most_ms", most);
	member_text(json, "how", ended_how(end));
	json_put_text(json, "by", end->by);
	member_number_if(json, "status", status >= 0, (uint64_t)status);
	json_put_use(json, end);
	json_put_text(json, "command", end->command);
	json_end(json);
}

static void json_put_event(struct json *json, const struct history_end *event)
{
	json_begin_object(json);
	member_text(json, "kind", end_state_names[history_state(event)]);
	member_time(json, "at_unix_ms", event->gone_ms);
	member_text(json, "user", event->user);
	member_number(json, "uid", event->uid);
	member_text(json, "gpus", event->gpus);
	member_time(json, "from_unix_ms", event->since_ms);
	member_time(json, "until_unix_ms", event->until_ms);
	json_put_text(json, "but", event->but);
	json_put_text(json, "reason", event->command);
	json_end(json);
}

void show_history_json(const struct history_end *ends, size_t count,
	const struct history_gap *gap, int64_t now_ms, const char *directory, FILE *out)
{
	struct json json = JSON_ON(out);

	document_begin(&json, "history", now_ms, directory);
	json_key(&json, "jobs");
	json_begin_array(&json);
	for (size_t i = 0; i < count; i++)
		if (!history_is_event(&ends[i]))
			json_put_end(&json, &ends[i]);
	json_end(&json);
	json_key(&json, "events");
	json_begin_array(&json);
	for (size_t i = 0; i < count; i++)
		if (history_is_event(&ends[i]))
			json_put_event(&json, &ends[i]);
	json_end(&json);
	member_gap(&json, gap);
	document_finish(&json);
}
