#include "history.h"
#include "hosts_table.h"
#include "parse.h"
#include "report.h"
#include "room.h"
#include "show_cells.h"

static bool has_answer(const struct host_state *state)
{
	return !state->trouble[0];
}

/* Puts an id, or any number above 0. */
static void put_id(struct table *table, unsigned column, int64_t id)
{
	show_put_id(table, column, id > 0 ? (uint64_t)id : 0);
}

/* Puts the number of the attempt; the first one leaves the cell empty. */
static void put_attempt(struct table *table, unsigned column, int64_t attempt)
{
	put_id(table, column, attempt > 1 ? attempt : 0);
}

/* --- the table of the machines ----------------------------------------------------------- */

enum {
	HOST_NAME,
	HOST_GPUS,
	HOST_FREE,
	HOST_LEASED,
	HOST_OTHER,
	HOST_WAITING,
	HOST_NEXT_FREE,
	HOST_START_ONE,
	HOST_START_FOUR,
	HOST_WHY,
};

static const struct table_column host_columns[] = {
	[HOST_NAME] = { .title = "HOST", .good = 16, .least = 8 },
	[HOST_GPUS] = { .title = "GPUS", .is_right = true },
	[HOST_FREE] = { .title = "FREE", .is_right = true },
	[HOST_LEASED] = { .title = "LEASED", .is_right = true },
	[HOST_OTHER] = { .title = "OTHER", .is_right = true, .is_optional = true },
	[HOST_WAITING] = { .title = "WAIT", .is_right = true },
	[HOST_NEXT_FREE] = { .title = "NEXT FREE", .is_right = true },
	[HOST_START_ONE] = { .title = "1 GPU", .is_right = true },
	[HOST_START_FOUR] = { .title = "4 GPUS", .is_right = true },
	[HOST_WHY] = { "WHY", .is_optional = true, .is_folded = true, .rank = 1 },
};

static void put_start(
	struct table *table, unsigned column, const struct host_start *start)
{
	if (start->kind == START_UNKNOWN)
		table_put(table, column, "?");
	else if (start->kind == START_KNOWN && !start->in_ms)
		table_put(table, column, "now");
	else if (start->kind == START_KNOWN)
		show_put_span(table, column, start->in_ms);
}

static void put_counts(struct table *table, const struct host_state *state)
{
	struct host_counts counts = host_counts_of(&state->machine);

	table_putf(table, HOST_GPUS, "%u", counts.gpus);
	table_putf(table, HOST_FREE, "%u", counts.idle);
	table_tint(table, HOST_FREE, counts.idle ? TINT_GREEN : TINT_NONE);
	table_putf(table, HOST_LEASED, "%u", counts.leased);
	if (counts.other)
		table_putf(table, HOST_OTHER, "%u", counts.other);
	table_putf(table, HOST_WAITING, "%zu%s", counts.waiting,
		state->machine.is_queue_cut ? "+" : "");
	show_put_span(table, HOST_NEXT_FREE, counts.next_free_ms);
	put_start(table, HOST_START_ONE, &state->starts[0]);
	put_start(table, HOST_START_FOUR, &state->starts[1]);
	table_put(table, HOST_WHY, state->machine.trouble);
}

int hosts_table_status(
	const struct hosts_states *states, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(host_columns);

	for (size_t i = 0; i < states->count; i++) {
		const struct host_state *state = &states->list[i];

		table_row(&table);
		table_put(&table, HOST_NAME, state->host);
		if (has_answer(state)) {
			put_counts(&table, state);
		} else {
			table_put(&table, HOST_WHY, state->trouble);
			table_tint(&table, HOST_WHY, TINT_RED);
		}
	}
	return show_and_release(&table, style, out);
}

/* --- the table of the queues ------------------------------------------------------------- */

enum {
	JOB_HOST,
	JOB_POSITION,
	JOB_ID,
	JOB_ATTEMPT,
	JOB_USER,
	JOB_GPUS,
	JOB_PRIORITY,
	JOB_SINCE,
	JOB_WAITS,
	JOB_NAME,
	JOB_WHY,
	JOB_COMMAND,
};

static const struct table_column job_columns[] = {
	[JOB_HOST] = { .title = "HOST", .good = 12, .least = 6 },
	[JOB_POSITION] = { .title = "POS", .is_right = true },
	[JOB_ID] = { .title = "JOB", .is_right = true },
	[JOB_ATTEMPT] = { "TRY", .is_right = true, .is_optional = true, .rank = 4 },
	[JOB_USER] = { .title = "USER", .good = 8, .least = 6 },
	[JOB_GPUS] = { .title = "GPUS", .is_right = true },
	[JOB_PRIORITY] = { "PRIO", .is_right = true, .is_optional = true, .rank = 2 },
	[JOB_SINCE] = { .title = "SINCE", .rank = 5 },
	[JOB_WAITS] = { .title = "WAITS", .is_right = true, .rank = 1 },
	[JOB_NAME] = { .title = "NAME", .is_optional = true, .good = 12, .least = 6 },
	[JOB_WHY] = { .title = "WHY", .is_folded = true, .rank = 3 },
	[JOB_COMMAND] = { .title = "COMMAND", .good = 30, .least = 8 },
};

/* Puts "2", "0.5", "18G" or "2x18G". */
static void put_wish(struct table *table, const struct machine_ticket *ticket)
{
	bool is_part = ticket->share > 0 && ticket->share < 1;
	struct need need =
		need_declared(is_part ? (unsigned)(ticket->share * 100 + 0.5) : 0,
			ticket->vram_mib > 0 ? (uint64_t)ticket->vram_mib : 0);
	char wish[96];
	struct text text = TEXT_ON(wish);
	bool is_whole = need_is_whole(&need);

	if (ticket->gpus < 0)
		return;
	if (is_whole || ticket->gpus != 1)
		text_addf(&text, is_whole ? "%lld" : "%lldx", (long long)ticket->gpus);
	show_add_need(&need, &text);
	table_put(table, JOB_GPUS, wish);
}

static void put_ticket(struct table *table, const struct hosts_states *states, size_t at,
	const struct machine_ticket *ticket)
{
	table_row(table);
	table_put(table, JOB_HOST, states->list[at].host);
	put_id(table, JOB_POSITION, ticket->position);
	put_id(table, JOB_ID, ticket->job);
	put_attempt(table, JOB_ATTEMPT, ticket->attempt);
	table_put(table, JOB_USER, ticket->user);
	put_wish(table, ticket);
	if (ticket->priority)
		table_putf(table, JOB_PRIORITY, "%lld", (long long)ticket->priority);
	show_put_time(table, JOB_SINCE, ticket->since_unix_ms, states->now_ms);
	show_put_span(table, JOB_WAITS, ticket->waits_ms);
	table_put(table, JOB_NAME, ticket->name);
	table_put(table, JOB_WHY, ticket->why);
	table_put(table, JOB_COMMAND, ticket->command);
}

/* Says which of the queues go on after these jobs. */
static void print_cut_queues(
	const struct hosts_states *states, const struct table_style *style, FILE *out)
{
	char line[HOST_NAME_SIZE + 40];

	for (size_t i = 0; i < states->count; i++) {
		if (!states->list[i].machine.is_queue_cut)
			continue;
		(void)snprintf(
			line, sizeof(line), "more jobs wait on %s", states->list[i].host);
		line_print(line, style, out);
	}
}

static bool is_any_answer(const struct hosts_states *states)
{
	for (size_t i = 0; i < states->count; i++)
		if (has_answer(&states->list[i]))
			return true;
	return false;
}

int hosts_table_queue(
	const struct hosts_states *states, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(job_columns);
	size_t count = 0;
	int r;

	for (size_t i = 0; i < states->count; i++) {
		const struct machine *machine = &states->list[i].machine;

		for (size_t at = 0; at < machine->queue_count; at++)
			put_ticket(&table, states, i, &machine->queue[at]);
		count += machine->queue_count;
	}
	if (!count) {
		if (is_any_answer(states))
			line_print("no job waits", style, out);
		return 0;
	}
	r = show_and_release(&table, style, out);
	print_cut_queues(states, style, out);
	return r;
}

/* --- the table of ended jobs ------------------------------------------------------------- */

enum {
	END_HOST,
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
	END_STATUS,
	END_NAME,
	END_COMMAND,
};

static const struct table_column end_columns[] = {
	[END_HOST] = { .title = "HOST", .good = 12, .least = 6 },
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
	[END_STATUS] = { .title = "STATUS", .is_right = true, .is_optional = true },
	[END_NAME] = { .title = "NAME", .is_optional = true, .good = 12, .least = 6 },
	[END_COMMAND] = { .title = "COMMAND", .good = 14, .least = 8 },
};

enum { SAME_END_MS = 2000 }; /* an end that is known to within this counts as exact */

static void put_state(struct table *table, const struct ended_job *job)
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

	table_putf(table, END_STATE, "%s%s%s%s%s", job->state,
		strcmp(job->how, HISTORY_LINGERED) == 0 ? ", given up" : "",
		strcmp(job->how, HISTORY_REBOOT) == 0 ? " by reboot" : "",
		job->by[0] ? " by " : "", job->by);
	for (size_t i = 0; i < END_STATES; i++)
		if (strcmp(job->state, end_state_names[i]) == 0)
			table_tint(table, END_STATE, tints[i]);
}

/* Puts "0,3", or "0:1" for an instance. */
static void put_gpus(struct table *table, const struct ended_job *job)
{
	char words[sizeof(job->gpus) * 4 + 24];
	struct text text = TEXT_ON(words);

	for (size_t i = 0; i < job->gpu_listed; i++)
		text_addf(&text, "%s%u", i ? "," : "", job->gpus[i]);
	if (job->instance >= 0)
		text_addf(&text, ":%lld", (long long)job->instance);
	table_put(table, END_GPUS, words);
}

static void put_use(struct table *table, const struct ended_job *job)
{
	char words[64];
	struct text text = TEXT_ON(words);

	if (job->ran_most_ms >= 0) {
		bool is_exact = job->ran_most_ms - job->ran_least_ms <= SAME_END_MS;
		char span[DURATION_SIZE];

		format_duration(job->ran_most_ms, span);
		table_putf(table, END_RAN, "%s%s", is_exact ? "" : "up to ", span);
	}
	if (job->peak_mib > 0) {
		report_add_size((uint64_t)job->peak_mib, &text);
		table_put(table, END_PEAK, words);
	}
	if (job->utilization_percent >= 0)
		table_putf(table, END_UTILIZATION, "%lld%%",
			(long long)job->utilization_percent);
}

static void put_end(struct table *table, const char *host, const struct ended_job *job,
	int64_t now_ms)
{
	table_row(table);
	table_put(table, END_HOST, host);
	put_id(table, END_JOB, job->job);
	put_attempt(table, END_ATTEMPT, job->attempt);
	table_put(table, END_USER, job->user);
	put_gpus(table, job);
	put_state(table, job);
	show_put_time(table, END_STARTED, job->started_unix_ms, now_ms);
	show_put_span(table, END_WAITED, job->waited_ms);
	put_use(table, job);
	if (job->status >= 0)
		table_putf(table, END_STATUS, "%lld", (long long)job->status);
	table_put(table, END_NAME, job->name);
	table_put(table, END_COMMAND, job->command);
}

/* Returns the machine with the earliest end that comes next; NULL after the last. */
static const struct host_state *next_end(
	const struct hosts_states *states, const size_t next[HOSTS_MAX])
{
	const struct host_state *found = NULL;
	int64_t least_ms = 0;

	for (size_t i = 0; i < states->count; i++) {
		const struct ended_jobs *ended = &states->list[i].ended;

		if (next[i] == ended->count)
			continue;
		/* an unknown end, -1, comes at once: the list of its machine is in order */
		if (!found || ended->list[next[i]].gone_unix_ms < least_ms) {
			found = &states->list[i];
			least_ms = ended->list[next[i]].gone_unix_ms;
		}
	}
	return found;
}

/* Says of which machines lines of the history are missing. */
static void print_gaps(
	const struct hosts_states *states, const struct table_style *style, FILE *out)
{
	for (size_t i = 0; i < states->count; i++) {
		const struct ended_jobs *ended = &states->list[i].ended;
		char words[HOST_NAME_SIZE + 160];
		struct text line = TEXT_ON(words);

		if (ended->missing_lines <= 0)
			continue;
		text_addf(&line, "%s: %lld line%s of the history could not be written",
			states->list[i].host, (long long)ended->missing_lines,
			ended->missing_lines == 1 ? "" : "s");
		if (ended->missing_unix_ms > 0) {
			text_add(&line, ", the last on ");
			show_add_date(&line, ended->missing_unix_ms);
		}
		line_print(words, style, out);
	}
}

int hosts_table_history(const struct hosts_states *states, uint64_t most,
	const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(end_columns);
	size_t next[HOSTS_MAX] = { 0 };
	const struct host_state *state;
	uint64_t left = 0;
	int r = 0;

	for (size_t i = 0; i < states->count; i++)
		left += states->list[i].ended.count;
	if (!left && is_any_answer(states))
		line_print("no job has ended", style, out);
	for (; (state = next_end(states, next)); left--) {
		size_t at = next[state - states->list]++;

		if (left <= most)
			put_end(&table, state->host, &state->ended.list[at],
				states->now_ms);
	}
	if (table.rows)
		r = show_and_release(&table, style, out);
	print_gaps(states, style, out);
	return r;
}
