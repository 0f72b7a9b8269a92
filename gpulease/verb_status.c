/*
 * --status and --queue: looking at the GPUs and at who waits for them.
 */
#include <errno.h>

#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "show.h"
#include "terminal.h"
#include "verbs.h"

/* How a verb shows what was seen. */
struct shower {
	int (*table)(const struct view *view, const struct table_style *style, FILE *out);
	void (*json)(const struct view *view, FILE *out);
};

static int look_and_show(struct settings *settings, const struct shower *shower)
{
	static struct context context;
	struct table_style style = terminal_style();
	struct why why = WHY_NONE;
	struct view view;
	int r = context_open(settings, &context);

	if (r != 0)
		return r;
	if (view_take(&context, &view, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (view.broken_records)
		note("skipped in '%s': %zu record%s that cannot be read", view.directory,
			view.broken_records, view.broken_records == 1 ? "" : "s");
	if (view.slotless)
		note("%u GPU%s not shown and cannot be leased: all 128 slots in '%s/gpu' are "
		     "used; gpulease --doctor says more",
			view.slotless, view.slotless == 1 ? " is" : "s are",
			view.directory);
	if (settings->json)
		shower->json(&view, stdout);
	else
		r = shower->table(&view, &style, stdout);
	view_release(&view);
	if (r < 0) {
		diag("%s", strerror(-r));
		return EXIT_MISUSE;
	}
	return EXIT_DONE;
}

int verb_status(struct settings *settings)
{
	return look_and_show(settings, &(struct shower){ show_status, show_status_json });
}

int verb_queue(struct settings *settings)
{
	return look_and_show(settings, &(struct shower){ show_queue, show_queue_json });
}
