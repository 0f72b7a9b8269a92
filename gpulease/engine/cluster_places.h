/*
 * Which job has which GPU of which node.  Only `scontrol -d show jobs` tells that.
 *
 * scontrol prints names and comments as they are, so a user can write into them what looks like the
 * GPUs of a job.  Therefore only what squeue and sinfo allow is taken: GPUs in use, on nodes of the
 * job, and each GPU once.  So at most jobs on one node can be taken for each other.
 */
#ifndef GPULEASE_CLUSTER_PLACES_H
#define GPULEASE_CLUSTER_PLACES_H

#include "cluster_jobs.h"
#include "cluster_nodes.h"

/* What a job has of one GPU. */
struct cluster_place {
	size_t gpu; /* among those of all nodes: ->first of its node and its index there */
	size_t job;       /* in the list of jobs */
	unsigned percent; /* of the GPU; 100: all of it */
};

/* By GPU. */
struct cluster_places {
	struct cluster_place *list;
	size_t count, room;
	bool *taken; /* of each GPU: a job has all of it */
};

#define CLUSTER_PLACES_NONE ((struct cluster_places){ .list = NULL })

/*
 * Asks scontrol for the GPUs of @jobs on @nodes.  Of a job that it does not tell of, as many GPUs
 * are chosen as the job has.  Returns 0, and the caller releases *@ret, or EXIT_MISUSE after a
 * message.
 */
MUST_CHECK int cluster_places_ask(const struct cluster_jobs *jobs,
	const struct cluster_nodes *nodes, struct cluster_places *ret);

/* Reads what scontrol has printed at @text, which is changed.  Pure but for memory.  Likewise. */
MUST_CHECK int cluster_places_read(char *text, const struct cluster_jobs *jobs,
	const struct cluster_nodes *nodes, struct cluster_places *ret);

void cluster_places_release(struct cluster_places *places);

#endif
