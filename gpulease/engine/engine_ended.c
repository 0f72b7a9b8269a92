/*
 * --history and --accounting of a cluster: what sacct knows of jobs.
 */
#include <errno.h>
#include <stdlib.h>

#include "accounting.h"
#include "clock.h"
#include "cluster_ended.h"
#include "cluster_nodes.h"
#include "diag.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "json_members.h"
#include "show_accounting.h"
#include "show_history.h"
#include "slurm_ask.h"
#include "terminal.h"
#include "view_ended.h"

enum { LONG_DEADLINE_MS = 120 * 1000 }; /* for a period that the user has chosen */

/* Without --since: the last jobs are looked for in the first period, then in the second one. */
static const int64_t periods_ms[] = { INT64_C(2) * 24 * 3600 * 1000,
	INT64_C(30) * 24 * 3600 * 1000 };

static struct ended_question make_question(const struct settings *settings,
	const struct ended_filter *filter, const char *by)
{
	bool is_chosen =
		filter->from_ms > 0 || settings->verb.history_count == UINT64_MAX;

	return (struct ended_question){
		.from_ms = filter->from_ms,
		.until_ms = filter->until_ms,
		.user = filter->user,
		.deadline_ms = is_chosen ? LONG_DEADLINE_MS : SLURM_DEADLINE_MS,
		.wanted_by = by,
	};
}

static int fail(int r)
{
	if (r >= 0)
		return EXIT_DONE;
	diag("%s", strerror(-r));
	return EXIT_MISUSE;
}

/* --- history ----------------------------------------------------------------------- */

/* Copies the last @most ends that the filter admits to *@ret, the latest last.  0 or -ENOMEM. */
static int choose_last(const struct cluster_ends *ends, const struct ended_filter *filter,
	uint64_t most, struct history_end **ret, size_t *ret_count)
{
	size_t count = 0, first = ends->count;

	while (first > 0 && count < most) {
		const struct cluster_end *end = &ends->list[--first];

		count += end->is_over && ended_filter_admits(filter, &end->end);
	}
	*ret = calloc(count + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	*ret_count = 0;
	for (; first < ends->count; first++) {
		struct cluster_end *end = &ends->list[first];

		if (!end->is_over || !ended_filter_admits(filter, &end->end))
			continue;
		(*ret)[*ret_count] = end->end;
		view_ended_name_users(&(*ret)[(*ret_count)++]);
	}
	return 0;
}

/* Asks for the last ends.  Returns 0, or an exit status after a message. */
static int ask_last(const struct settings *settings, const struct ended_filter *filter,
	struct history_end **ret, size_t *ret_count)
{
	struct ended_question question = make_question(settings, filter, "--history");
	uint64_t most = settings->verb.history_count;
	bool has_bound = question.from_ms > 0 || most == UINT64_MAX;
	int64_t last_ms = min_i64(clock_real_ms(), filter->until_ms);

	for (size_t i = 0;; i++) {
		struct cluster_ends ends;
		int r;

		if (!has_bound)
			question.from_ms = last_ms - periods_ms[i];
		r = cluster_ends_ask(&question, &ends);
		if (r != 0)
			return r;
		r = choose_last(&ends, filter, most, ret, ret_count);
		cluster_ends_release(&ends);
		if (r < 0)
			return fail(r);
		if (has_bound || *ret_count >= most || i + 1 == ARRAY_SIZE(periods_ms))
			return 0;
		free(*ret);
	}
}

int engine_history(struct engine_line *line)
{
	const struct settings *settings = &line->settings;
	struct table_style style = terminal_style();
	struct history_gap gap = { .missing = 0 };
	struct history_end *ends = NULL;
	struct ended_filter filter;
	struct why why = WHY_NONE;
	size_t count = 0;
	int r;

	document_engine = "slurm";
	if (ended_filter_make(settings, &filter, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	r = ask_last(settings, &filter, &ends, &count);
	if (r != 0)
		return r;
	if (settings->output.json)
		show_history_json(ends, count, &gap, clock_real_ms(), "", stdout);
	else if (!count)
		line_print(ended_filter_is_open(&filter)
				   ? "no job has ended in the last 30 days"
				   : "no such job has ended",
			&style, stdout);
	else
		r = show_history(ends, count, clock_real_ms(), &style, stdout);
	free(ends);
	return fail(r);
}

/* --- accounting -------------------------------------------------------------------- */

/* Adds all attempts, the latest first. */
static int add_all(const struct cluster_ends *ends, struct accounting *accounting)
{
	int r = 0;

	for (size_t i = ends->count; i-- > 0 && r == 0;)
		r = accounting_add(
			accounting, &ends->list[i].end, !ends->list[i].is_over);
	return r;
}

static int show_sums(const struct output_settings *output, int64_t now_ms,
	const struct accounting *accounting)
{
	struct table_style style = terminal_style();

	if (output->json)
		show_accounting_json(accounting, now_ms, "", stdout);
	else if (output->csv)
		show_accounting_csv(accounting, stdout);
	else
		return show_accounting(accounting, &style, stdout);
	return 0;
}

int engine_accounting(struct engine_line *line)
{
	const struct settings *settings = &line->settings;
	int64_t now_ms = clock_real_ms();
	struct cluster_nodes nodes;
	struct cluster_ends ends;
	struct accounting accounting;
	struct ended_question question;
	struct ended_filter filter;
	struct why why = WHY_NONE;
	int r;

	document_engine = "slurm";
	if (ended_filter_make(settings, &filter, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	question = make_question(settings, &filter, "--accounting");
	if (question.from_ms <= 0)
		question.from_ms = min_i64(now_ms, filter.until_ms) -
				   periods_ms[ARRAY_SIZE(periods_ms) - 1];
	r = cluster_ends_ask(&question, &ends);
	if (r != 0)
		return r;
	r = cluster_nodes_ask(&nodes);
	if (r != 0) {
		cluster_ends_release(&ends);
		return r;
	}
	accounting_init(&accounting, &filter, now_ms);
	accounting.gpus = (unsigned)nodes.gpus;
	r = add_all(&ends, &accounting);
	accounting_finish(&accounting);
	if (r == 0)
		r = show_sums(&settings->output, now_ms, &accounting);
	accounting_release(&accounting);
	cluster_nodes_release(&nodes);
	cluster_ends_release(&ends);
	return fail(r);
}
