/*
 * --status and --queue of a cluster.
 */
#include <errno.h>

#include "diag.h"
#include "engine_look.h"
#include "engine_verbs.h"
#include "exitcodes.h"
#include "json_members.h"
#include "show_cluster.h"
#include "show_queue.h"
#include "show_status.h"
#include "terminal.h"

/* In a table, the large numbers of Slurm would only take room: the jobs are in their order. */
static void hide_priorities(struct view *view)
{
	for (size_t i = 0; i < view->job_count; i++)
		view->jobs[i].priority = 0;
}

static int show(const struct settings *settings, struct cluster *cluster)
{
	struct table_style style = terminal_style();
	bool is_queue = settings->verb.kind == VERB_QUEUE;

	if (settings->output.json && is_queue)
		show_queue_json(&cluster->view, stdout);
	else if (settings->output.json)
		show_status_json(&cluster->view, stdout);
	if (settings->output.json)
		return 0;
	hide_priorities(&cluster->view);
	return is_queue ? show_queue(&cluster->view, &style, stdout)
			: show_cluster(cluster, &style, stdout);
}

int engine_status(struct engine_line *line)
{
	const struct settings *settings = &line->settings;
	struct cluster cluster;
	int r;

	document_engine = "slurm";
	if (settings->verb.operand_count)
		return engine_status_jobs(settings);
	r = cluster_ask(settings->verb.kind == VERB_QUEUE, &cluster);
	if (r != 0)
		return r;
	r = show(settings, &cluster);
	if (r < 0)
		diag("%s", strerror(-r));
	cluster_release(&cluster);
	return r < 0 ? EXIT_MISUSE : EXIT_DONE;
}
