/*
 * MIG instances: parts of a GPU that are leased as GPUs are, while the GPU itself, their
 * parent, is not.
 *
 * An instance has a lease file and a slot of its own, found by its uuid.  Its index, bus and
 * row in the probe are its parent's: nvidia-smi says nothing of an instance but that it is
 * there.  What is in use on it is therefore judged by what is known of the parent:
 *
 * - A process on the parent that belongs to no lease of an instance there makes all its free
 *   instances GPU_EXTERNAL, for it may be on any of them.
 * - Memory of the parent counts as its leased instances' as far as these are large enough to
 *   hold it; they are taken for as large as their profile can mean.  Where instances share
 *   one GPU instance (1c.3g.40gb) it counts for each of them.  So users who are shown no
 *   processes can overlook a small one beside a large lease.
 * - The parent is idle when all of it is, so whoever lingers on an instance does so as long
 *   as another one computes.
 */
#ifndef GPULEASE_INSTANCE_H
#define GPULEASE_INSTANCE_H

#include "snapshot.h"

/* Whether it is an instance: the driver has such uuids for nothing else. */
static inline bool gpu_is_instance(const struct gpu_record *gpu)
{
	return strncasecmp(gpu->uuid, "MIG-", 4) == 0;
}

/*
 * The memory of an instance by its profile, "3g.40gb", in MiB: at least, and at most; 0 where
 * the profile does not say.  The number in it is rounded and in no known unit: 1g.18gb has
 * been seen with 16384 MiB, 3g.40gb with 40448.
 */
uint64_t instance_least_mib(const char *profile);
uint64_t instance_most_mib(const char *profile);

/*
 * What @probe says of instance @mig, in @gpu: all but boot and slot.  What its parent does
 * not say of itself stays.
 */
void instance_describe(
	const struct probe *probe, const struct probe_mig *mig, struct gpu_record *gpu);

/*
 * Whether @probe shows that there is no such instance any more: MIG is disabled on its
 * parent, or others are listed there.  A list without any may only be missing.
 */
bool instance_is_gone(const struct probe *probe, const struct gpu_record *gpu);

/* Whether MIG is enabled on the GPU, so that it cannot be leased itself. */
bool gpu_is_parent(const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/*
 * When it is known who has which lease: of every GPU ->mig, and of instances also ->row,
 * ->exists and ->stranger.
 */
void instances_find(struct snapshot *snapshot, int64_t now_ms);

/*
 * The state of an instance without a live lease that the probe lists, and of whose parent it
 * says something certain.  Sets ->culprit.
 */
enum gpu_state instance_judge(
	const struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms);

#endif
