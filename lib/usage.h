/*
 * Whose memory it is that the probe shows: on GPUs that several leases share, and on those
 * that nobody has leased.
 *
 * A process belongs to a lease on its GPU if the lease's owner is its ancestor, or it carries
 * the lease's token (kin.h).  What belongs to no lease is foreign.  A foreign process counts
 * with the most that was seen of it and a buffer on top, until it exits; memory in use that no
 * process accounts for counts as it is.  So inside a container and under hidepid, where
 * processes are not seen, the memory of leases counts twice: too much rather than too little.
 *
 * What a lease has left that has just ended settles: it is told apart from what is foreign for
 * as long as usage_is_settling() says, since nobody has to go for it to be gone.
 *
 * What is no more than the idle threshold is nobody's use.
 */
#ifndef GPULEASE_USAGE_H
#define GPULEASE_USAGE_H

#include "kin.h"
#include "snapshot.h"

/*
 * By the probe of @view: for each lease on a shared GPU ->seen_mib and ->lease.peak_mib; for
 * each such GPU, and each without a live lease, ->foreign_mib, ->settling_mib and as ->culprit
 * who holds the most, of what is foreign if anything is; and of each lease whose owner is dead
 * ->quiet_ms.  Nothing is known without a probe.
 */
void usage_judge(struct snapshot *view, int64_t now_ms);

/*
 * The MiB that @lease is counted with on a card of @total_mib: what it declares, before it has
 * allocated any; once it was seen to use more, that and a buffer.
 */
uint64_t usage_budget_mib(
	const struct usage_policy *policy, const struct lease *lease, uint64_t total_mib);

/* Whether the process that shows @kin belongs to the live @lease. */
bool usage_is_by(const struct snapshot *view, const struct snapshot_lease *lease,
	const struct kin *kin);

/* Whether @pid was started by a lease that is over but still stands in the file of @slot. */
bool usage_is_left_over(const struct snapshot *view, unsigned slot, uint32_t pid);

/*
 * Whether memory that process @pid holds on the GPU, or none that is to be seen where it is 0,
 * is taken for that of a lease there that has just ended.
 */
bool usage_is_settling(const struct snapshot *view, const struct snapshot_gpu *gpu,
	uint32_t pid, int64_t now_ms);

/* Whether @pid is a server of MPS, which holds memory for others.  Its name is looked up. */
bool usage_is_mps_server(uint32_t pid);

#endif
