/*
 * Lists of generic resources as Slurm prints them, as far as they are GPUs or shards of GPUs.
 * Pure.
 *
 *	what a node has         gpu:a100:4(S:0-1),shard:16
 *	what of it is in use    gpu:a100:2(IDX:0-1),gpu:(null):1(IDX:2),shard:a100:3(2/4,1/4)
 *	what a job asks for     gres:gpu:a100:2 or, in later versions, gres/gpu:a100:2
 *	what a job has          cpu=4,gres/gpu=2,gres/gpu:a100=2
 */
#ifndef GPULEASE_CLUSTER_GRES_H
#define GPULEASE_CLUSTER_GRES_H

#include "gpuset.h"
#include "text.h"

enum { GRES_TYPE_SIZE = 48, GRES_COUNT_MAX = 1 << 20 };

struct gres {
	bool is_shard;             /* else GPUs */
	char type[GRES_TYPE_SIZE]; /* "": none is given */
	unsigned count;
	bool is_total;      /* of a list with `=`, where each type has an item besides */
	const char *detail; /* what stands in brackets, in the list; NULL: nothing */
};

/* Reads the next item of *@list that is GPUs or shards, and moves *@list on.  False: no more. */
bool gres_next(const char **list, struct gres *ret);

/* Returns how many GPUs, or shards, the list means; an item without a number means one. */
unsigned gres_count(const char *list, bool of_shards);

/*
 * Returns the indices behind "IDX:" in @detail, "IDX:0-1,3)".  Those from GPUSET_MAX on are left
 * out.
 */
struct gpuset gres_indices(const char *detail);

/*
 * Reads the shards of each GPU in @detail, "(2/4,0/4)": sets for the GPU @index how many are in use
 * and how many there are.  False: it does not say.
 */
bool gres_shards_of(
	const char *detail, unsigned index, unsigned *ret_used, unsigned *ret_all);

#endif
