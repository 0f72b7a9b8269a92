/*
 * --history: lists the jobs that ended last.
 */
#include <errno.h>

#include "clock.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "show_history.h"
#include "terminal.h"
#include "verbs.h"
#include "view_ended.h"

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
	if (!settings->output.json)
		show_gap(&gap, &style, stdout);
	free(ends);
	if (r < 0) {
		diag("%s", strerror(-r));
		return EXIT_MISUSE;
	}
	return EXIT_DONE;
}
