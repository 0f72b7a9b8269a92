/*
 * --history: lists the jobs that ended last, and the pauses between them.
 */
#include <errno.h>

#include "clock.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "show_history.h"
#include "terminal.h"
#include "unknown_status.h"
#include "verbs.h"
#include "view_ended.h"

/* Prints what the status of a job needs, if one of the jobs lacks it. */
static void show_what_a_status_needs(
	const struct history_end *ends, size_t count, const struct table_style *style)
{
	char line[160];

	for (size_t i = 0; i < count; i++) {
		if (history_state(&ends[i]) != END_UNKNOWN)
			continue;
		(void)snprintf(line, sizeof(line),
			"\"%s\" means that the status is not recorded: %s",
			end_state_names[END_UNKNOWN], unknown_status_remedy());
		line_print(line, style, stdout);
		return;
	}
}

int verb_history(struct settings *settings)
{
	static struct context context;
	struct ended_filter filter;
	struct table_style style = terminal_style();
	struct history_end *ends = NULL;
	struct history_gap gap = { .missing = 0 };
	struct why why = WHY_NONE;
	size_t count = 0;
	int r = context_open(settings, &context);

	if (r != 0)
		return r;
	if (ended_filter_make(settings, &filter, &why) < 0 ||
		view_ended(&context, &filter, settings->verb.history_count, &ends, &count,
			&gap, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (settings->output.json)
		show_history_json(
			ends, count, &gap, clock_real_ms(), context.dir.path, stdout);
	else if (!count && !ended_filter_is_open(&filter))
		line_print("no such job has ended", &style, stdout);
	else
		r = show_history(ends, count, clock_real_ms(), &style, stdout);
	if (!settings->output.json) {
		show_what_a_status_needs(ends, count, &style);
		show_gap(&gap, &style, stdout);
	}
	free(ends);
	if (r < 0) {
		diag("%s", strerror(-r));
		return EXIT_MISUSE;
	}
	return EXIT_DONE;
}
