/*
 * The cluster as struct view, which --status, --queue and JSON print as those of one machine.  Pure
 * but for memory.
 *
 * A GPU has the index that Slurm gives it on its node, and NODE/INDEX as its uuid.  Slurm knows
 * neither the memory nor the use of GPUs.
 */
#ifndef GPULEASE_CLUSTER_VIEW_H
#define GPULEASE_CLUSTER_VIEW_H

#include "cluster_places.h"
#include "view.h"

/* What Slurm has told of the cluster. */
struct cluster {
	struct cluster_nodes nodes;
	struct cluster_jobs jobs;
	struct cluster_places places;
	struct view view; /* points into ->nodes */
};

#define CLUSTER_NONE                           \
	((struct cluster){                     \
		.nodes = CLUSTER_NODES_NONE,   \
		.jobs = CLUSTER_JOBS_NONE,     \
		.places = CLUSTER_PLACES_NONE, \
		.view = VIEW_NONE,             \
	})

/*
 * Asks for all of it; if @only_queue, not for the GPUs of jobs, and for nodes only if jobs ask for
 * shards, whose size they tell.  Returns 0, and the caller releases *@ret, or EXIT_MISUSE after a
 * message.
 */
MUST_CHECK int cluster_ask(bool only_queue, struct cluster *ret);

/* Sets ->view from the other parts, which has to be released before.  Returns 0 or -ENOMEM. */
MUST_CHECK int cluster_view_make(struct cluster *cluster, int64_t now_ms);

/* Sets *@ret to what @job has of a GPU, @percent of it. */
void cluster_view_holder(const struct cluster_job *job, unsigned percent, int64_t now_ms,
	struct view_holder *ret);

void cluster_release(struct cluster *cluster);

#endif
