/*
 * How large the partitions of the cluster are, with the nodes that are down.
 *
 * Slurm lets a job wait that asks for more nodes or CPUs than its partition has.  The reasons that
 * it gives, PartitionConfig and PartitionNodeLimit, may pass, so only the numbers tell.
 */
#ifndef GPULEASE_CLUSTER_SIZE_H
#define GPULEASE_CLUSTER_SIZE_H

#include "text.h"

struct cluster_size {
	int64_t cpus;  /* of the partition that has the most */
	int64_t nodes; /* that a job may have in the partition that gives the most */
};

/* Reads lines of PARTITION, CPUs as A/I/O/T, NODES and 1-MOST at @text, which is changed.  Pure. */
void cluster_size_read(char *text, struct cluster_size *ret);

/*
 * Whether the job @id, which waits for @reason, can never start because it asks for more than its
 * partition has.  Asks squeue and sinfo only if the reason is one of the two.  Appends why to @out:
 * "asks for 99 CPUs, and its partition has 16".
 */
bool cluster_is_too_small(uint64_t id, const char *reason, struct text *out);

#endif
