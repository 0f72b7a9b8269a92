/*
 * --accounting: who has used how much.
 */
#include <errno.h>

#include "accounting.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "explain.h"
#include "show.h"
#include "terminal.h"
#include "verbs.h"

struct bookkeeper {
	struct view_taker taker;
	struct accounting accounting;
	const struct ended_filter *filter;
	bool has_begun;
};

static void begin(struct bookkeeper *keeper)
{
	if (keeper->has_begun)
		return;
	accounting_init(&keeper->accounting, keeper->filter, keeper->taker.real_ms);
	keeper->accounting.gpus = keeper->taker.gpu_count;
	keeper->has_begun = true;
}

static int book(struct view_taker *taker, const struct history_end *end, bool is_running)
{
	struct bookkeeper *keeper = (struct bookkeeper *)taker;

	begin(keeper);
	return accounting_add(&keeper->accounting, end, is_running);
}

static void name_users(struct accounting *accounting)
{
	for (size_t i = 0; i < accounting->count; i++) {
		struct accounting_row *row = &accounting->rows[i];
		struct text name;

		if (row->user[0])
			continue;
		name = TEXT_ON(row->user);
		describe_user(row->uid, NULL, &name);
	}
}

static int show(const struct settings *settings, const struct context *context,
	const struct bookkeeper *keeper)
{
	struct table_style style = terminal_style();
	int r = 0;

	if (settings->json)
		show_accounting_json(&keeper->accounting, keeper->taker.real_ms,
			context->dir.path, stdout);
	else if (settings->csv)
		show_accounting_csv(&keeper->accounting, stdout);
	else
		r = show_accounting(&keeper->accounting, &style, stdout);
	if (r < 0)
		diag("%s", strerror(-r));
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}

int verb_accounting(struct settings *settings)
{
	static struct context context;
	struct ended_filter filter;
	struct bookkeeper keeper = {
		.taker = { .take = book, .wants_running = true },
		.filter = &filter,
	};
	struct why why = WHY_NONE;
	int r;

	if (settings->json && settings->csv) {
		diag("--json and --csv exclude each other; give one");
		return EXIT_MISUSE;
	}
	r = context_open(settings, &context);
	if (r != 0)
		return r;
	if (ended_filter_make(settings, &filter, &why) < 0 ||
		view_each_ended(&context, &keeper.taker, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	begin(&keeper); /* there was nothing at all */
	keeper.accounting.gap = keeper.taker.gap;
	accounting_finish(&keeper.accounting);
	name_users(&keeper.accounting);
	r = show(settings, &context, &keeper);
	accounting_release(&keeper.accounting);
	return r;
}
