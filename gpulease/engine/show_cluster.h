/*
 * --status of a cluster as a table for people: a row for each node with GPUs, the jobs that have
 * GPUs, and the queue (show_queue.h).  Pure but for memory; local times follow $TZ.
 */
#ifndef GPULEASE_SHOW_CLUSTER_H
#define GPULEASE_SHOW_CLUSTER_H

#include "cluster_view.h"
#include "render_table.h"

/* Prints all of it.  Returns 0, or -ENOMEM after part of it was printed. */
MUST_CHECK int show_cluster(
	const struct cluster *cluster, const struct table_style *style, FILE *out);

#endif
