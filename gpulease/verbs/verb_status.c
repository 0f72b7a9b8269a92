/*
 * --status and --queue: show the GPUs and the jobs that wait for them.  --status ID: shows a job.
 * --windows: shows when GPUs are kept.
 */
#include <errno.h>

#include "context.h"
#include "diag.h"
#include "exitcodes.h"
#include "outcome.h"
#include "show_job.h"
#include "show_queue.h"
#include "show_status.h"
#include "terminal.h"
#include "verbs.h"

/* The two forms in which a verb prints the state. */
struct status_printer {
	int (*table)(const struct view *view, const struct table_style *style, FILE *out);
	void (*json)(const struct view *view, FILE *out);
};

static int status_print(struct settings *settings, const struct status_printer *printer)
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
		note("skipped in '%s': %zu unreadable record%s; gpulease --doctor says more",
			view.directory, view.broken_records,
			view.broken_records == 1 ? "" : "s");
	if (view.slotless)
		note("%u GPU%s not shown and cannot be leased: all 128 slots in '%s/gpu' are "
		     "used; gpulease --doctor says more",
			view.slotless, view.slotless == 1 ? " is" : "s are",
			view.directory);
	if (settings->output.json)
		printer->json(&view, stdout);
	else
		r = printer->table(&view, &style, stdout);
	view_release(&view);
	if (r < 0) {
		diag("%s", strerror(-r));
		return EXIT_MISUSE;
	}
	return EXIT_DONE;
}

/* Prints the jobs that the operands name, with a message for each that is unknown. */
static int status_print_jobs(struct settings *settings)
{
	struct operand_walk walk = OPERAND_WALK(
		settings->verb.operands, settings->verb.operand_count, OPERAND_JOB);
	static struct context context;
	struct table_style style = terminal_style();
	struct why why = WHY_NONE;
	struct job_views jobs;
	bool has_printed = false;
	int r = context_open(settings, &context);

	if (r != 0)
		return r;
	if (job_views_take(&context, &walk, &jobs, &why) < 0) {
		diag("%s", why.text);
		return EXIT_MISUSE;
	}
	if (settings->output.json)
		show_jobs_json(&jobs, stdout);
	for (size_t i = 0; i < jobs.count; i++) {
		if (!jobs.all[i].is_known) {
			outcome_explain_no_job(jobs.all[i].id, &why);
			diag("%s", why.text);
			r = EXIT_NOT_DONE;
		} else if (!settings->output.json) {
			if (has_printed)
				(void)putchar('\n');
			show_job(&jobs.view, &jobs.all[i], &style, stdout);
			has_printed = true;
		}
	}
	job_views_release(&jobs);
	return r;
}

int verb_status(struct settings *settings)
{
	static const struct status_printer printer = { show_status, show_status_json };

	if (settings->verb.operand_count)
		return status_print_jobs(settings);
	return status_print(settings, &printer);
}

int verb_windows(struct settings *settings)
{
	static const struct status_printer printer = { show_windows, show_windows_json };

	return status_print(settings, &printer);
}

int verb_queue(struct settings *settings)
{
	static const struct status_printer printer = { show_queue, show_queue_json };

	return status_print(settings, &printer);
}
