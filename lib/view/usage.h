/*
 * Which processes use the memory that the probe shows: on GPUs that several leases share, and on
 * GPUs without a lease.
 *
 * A process belongs to a lease on its GPU if the lease's owner is its ancestor, or if it carries
 * the lease's token (process_lease.h).  Use that belongs to no lease is foreign.  A foreign process
 * counts with the most that was seen of it and a buffer on top, until it exits.  Memory in use that
 * belongs to no listed process counts as it is.  So inside a container and under hidepid, where
 * processes are not seen, the memory of leases counts twice: too much rather than too little.
 *
 * When a lease ends, the memory that it leaves settles for a time.  As long as usage_is_settling(),
 * it does not count as foreign, because it becomes free without the end of another job.
 *
 * Use up to the idle threshold is ignored.
 */
#ifndef GPULEASE_USAGE_H
#define GPULEASE_USAGE_H

#include "process_lease.h"
#include "snapshot.h"

/*
 * Sets the use of leases and GPUs by the probe of @view; without a probe nothing is known.  Sets
 * ->seen_mib and ->lease.peak_mib of each lease on a shared GPU, and ->quiet_ms of each lease with
 * a dead owner.  Sets ->foreign_mib, ->settling_mib and ->culprit of each shared GPU and each GPU
 * without a live lease.  The culprit is the process with the most foreign memory or, if there is no
 * foreign memory, with the most settling memory.
 */
void usage_judge(struct snapshot *view, int64_t now_ms);

/*
 * Returns the MiB that @lease counts with on a GPU of @total_mib: what it declares, also before it
 * has allocated any memory; once it was seen to use more, its peak and a buffer.
 */
uint64_t usage_budget_mib(
	const struct usage_policy *policy, const struct lease *lease, uint64_t total_mib);

/* Whether the process with @signs belongs to the live @lease. */
bool usage_is_by(const struct snapshot *view, const struct snapshot_lease *lease,
	const struct process_lease *signs);

/* Whether @pid was started by a lease that is over but has a record in the file of @slot. */
bool usage_is_left_over(const struct snapshot *view, unsigned slot, uint32_t pid);

/*
 * Whether memory of process @pid on the GPU counts as that of a lease there that has just ended;
 * @pid 0: memory of no listed process.
 */
bool usage_is_settling(const struct snapshot *view, const struct snapshot_gpu *gpu,
	uint32_t pid, int64_t now_ms);

/*
 * Finds the process that may take much memory of the unused GPU again: it lives, has no lease
 * there, and was seen with more than the idle threshold.  Of several, the one with the highest peak
 * counts.  A process that an ended job has left does not count, because the linger time has judged
 * it by its present use.  Sets ->past_mib and ->culprit of @gpu, or leaves both unchanged.
 */
void usage_find_past(const struct snapshot *view, struct snapshot_gpu *gpu);

/* Whether @pid is an MPS server, which holds memory for other processes.  Reads its name. */
bool usage_is_mps_server(uint32_t pid);

#endif
