/*
 * The nodes of the cluster, as sinfo prints them, and their GPUs.
 *
 *	cluster_nodes_ask -> … -> cluster_nodes_release
 */
#ifndef GPULEASE_CLUSTER_NODES_H
#define GPULEASE_CLUSTER_NODES_H

#include "cluster_gres.h"

enum { NODE_NAME_SIZE = 64, NODE_TYPES_MAX = 6, NODES_MAX = 65536 };

/* Whether jobs can start on a node. */
enum node_phase {
	NODE_WORKS,
	NODE_PAUSED, /* drained, or kept for maintenance: the administrator wants no jobs there */
	NODE_DOWN, /* down, or does not answer */
};

/* GPUs of one type, which have indices after each other. */
struct node_type {
	char name[GRES_TYPE_SIZE]; /* "": the configuration names none */
	unsigned count;
};

struct cluster_node {
	char name[NODE_NAME_SIZE];
	char state[24]; /* Slurm's word, without its sign: "draining" */
	enum node_phase phase;
	char reason[160]; /* "": none */
	char by[64];      /* the user that has set the reason */
	int64_t since_s;  /* when; 0: not known */
	unsigned gpus, shards;
	struct node_type types[NODE_TYPES_MAX];
	size_t type_count;
	struct gpuset used;   /* GPUs that whole jobs have */
	struct gpuset shared; /* GPUs of which jobs have shards */
	char shard_use[128];  /* "2/4,0/4)" as gres_shards_of() reads it; "": not known */
	size_t first;         /* of its GPUs among those of all nodes */
};

/* By name, as Slurm sorts them; each node once. */
struct cluster_nodes {
	struct cluster_node *list;
	size_t count, room;
	size_t gpus;     /* of all nodes */
	size_t *by_name; /* indices of ->list, sorted for cluster_nodes_find() */
};

#define CLUSTER_NODES_NONE ((struct cluster_nodes){ .list = NULL })

/* Asks sinfo.  Returns 0, and the caller releases *@ret, or EXIT_MISUSE after a message. */
MUST_CHECK int cluster_nodes_ask(struct cluster_nodes *ret);

/*
 * Reads what sinfo has printed at @text, which is changed; lines without @mark (slurm_ask.h) are
 * skipped.  Pure but for memory.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int cluster_nodes_read(
	char *text, const char *mark, struct cluster_nodes *ret);

/* Returns the node of that name, or NULL. */
struct cluster_node *cluster_nodes_find(
	const struct cluster_nodes *nodes, const char *name);

/* Returns the type of the GPU @index of @node; "": not known. */
const char *cluster_node_type(const struct cluster_node *node, unsigned index);

/* Appends what keeps jobs from @node: "is on node n4, which is down: fan (root)"; else nothing. */
void cluster_node_explain(const struct cluster_node *node, struct text *out);

void cluster_nodes_release(struct cluster_nodes *nodes);

#endif
