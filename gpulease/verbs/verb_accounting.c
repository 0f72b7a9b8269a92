/*
 * --accounting: GPU time and waits per user.
 */
#include <errno.h>

#include "accounting.h"
#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "privacy.h"
#include "show_accounting.h"
#include "terminal.h"
#include "verbs.h"
#include "view_ended.h"

/* Sums up what view_each_ended() reports; ->taker comes first, so that one points to the other. */
struct bookkeeper {
	struct view_taker taker;
	struct accounting accounting;
	const struct ended_filter *filter;
	bool has_begun;
};

/* Begins the sums, once the taker knows the time and the number of GPUs. */
static void bookkeeper_begin(struct bookkeeper *keeper)
{
	if (keeper->has_begun)
		return;
	accounting_init(&keeper->accounting, keeper->filter, keeper->taker.real_ms);
	keeper->accounting.gpus = keeper->taker.gpu_count;
	keeper->has_begun = true;
}

static int bookkeeper_add(
	struct view_taker *taker, const struct history_end *end, bool is_running)
{
	struct bookkeeper *keeper = (struct bookkeeper *)taker;

	bookkeeper_begin(keeper);
	return accounting_add(&keeper->accounting, end, is_running);
}

/* Sets the names of the users that the records know by number only. */
static void bookkeeper_name_users(struct accounting *accounting)
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

static int bookkeeper_show(const struct output_settings *output,
	const struct context *context, const struct bookkeeper *keeper)
{
	struct table_style style = terminal_style();
	int r = 0;

	if (output->json)
		show_accounting_json(&keeper->accounting, keeper->taker.real_ms,
			context->dir.path, stdout);
	else if (output->csv)
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
		.taker = { .take = bookkeeper_add, .wants_running = true },
		.filter = &filter,
	};
	struct why why = WHY_NONE;
	int r = context_open(settings, &context);

	if (r != 0)
		return r;
	if (ended_filter_make(settings, &filter, &why) < 0 ||
		view_each_ended(&context, &keeper.taker, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	bookkeeper_begin(&keeper); /* if no job was reported, this has not happened yet */
	keeper.accounting.gap = keeper.taker.gap;
	accounting_finish(&keeper.accounting);
	bookkeeper_name_users(&keeper.accounting);
	r = bookkeeper_show(&settings->output, &context, &keeper);
	accounting_release(&keeper.accounting);
	return r;
}
