/*
 * The GPUs of the cluster as far as the administrator has named them: the types in slurm.conf, and
 * the shards into which a GPU is divided.
 */
#ifndef GPULEASE_CLUSTER_GPUS_H
#define GPULEASE_CLUSTER_GPUS_H

#include "settings.h"
#include "text.h"

enum { CLUSTER_TYPES_MAX = 64 };

struct cluster_gpus {
	char types[CLUSTER_TYPES_MAX][MODEL_SIZE]; /* each once */
	unsigned type_count;
	unsigned most;   /* GPUs of the node that has the most */
	unsigned shards; /* per GPU, of the node that has the most; 0: there are none */
};

/* Asks sinfo.  Returns 0, or EXIT_MISUSE after a message. */
MUST_CHECK int cluster_gpus_ask(struct cluster_gpus *ret);

/* Reads what `sinfo -h -o %G` has printed: "gpu:a100:4(S:0-1),shard:a100:16".  Pure. */
void cluster_gpus_read(const char *text, struct cluster_gpus *ret);

/*
 * Finds the type that @wish means.  The type of this name comes first, then the types that have
 * @wish in their name (model_name.h), and last those that @wish, the full name of a card, has in
 * its own.  Returns 0 with *@ret in @gpus, or -EINVAL with a list of the types in @why: there is no
 * such type, or there are several.  Pure.
 */
MUST_CHECK int cluster_gpus_find(const struct cluster_gpus *gpus, const char *wish,
	const char **ret, struct why *why);

#endif
