/*
 * MIG instances: parts of a GPU that are leased like GPUs, while the GPU itself, their parent, is
 * not leased.
 *
 * An instance has a lease file and a slot of its own, found by its UUID.  Its index, bus and row in
 * the probe are its parent's, because nvidia-smi shows of an instance only that it exists.  So its
 * use is judged by what is known of the parent:
 *
 * - A process on the parent that belongs to no lease of an instance there makes all free instances
 *   of the parent GPU_EXTERNAL, because it may be on any of them.
 * - Memory in use on the parent counts as that of its leased instances, up to their size, which is
 *   taken as the largest that their profile can mean.  If instances share one GPU instance
 *   (1c.3g.40gb), the size counts for each of them.  So users to whom nvidia-smi shows no processes
 *   can overlook a small process beside a large lease.
 * - The parent is idle only when all of it is.  So a lease lingers on an instance as long as
 *   another instance computes.
 */
#ifndef GPULEASE_INSTANCE_H
#define GPULEASE_INSTANCE_H

#include "snapshot.h"

/* Whether @gpu is an instance: the driver gives such UUIDs to nothing else. */
static inline bool gpu_is_instance(const struct gpu_record *gpu)
{
	return strncasecmp(gpu->uuid, "MIG-", 4) == 0;
}

/*
 * Return the least and the most memory, in MiB, that the profile of an instance ("3g.40gb") can
 * mean; 0 if the profile has no number.  The number is rounded and its unit is not documented:
 * 1g.18gb has been seen with 16384 MiB, 3g.40gb with 40448.
 */
uint64_t instance_least_mib(const char *profile);
uint64_t instance_most_mib(const char *profile);

/*
 * Sets in @gpu what @probe shows of instance @mig: all fields but boot and slot.  Fields that are
 * unknown of its parent keep their values.
 */
void instance_describe(
	const struct probe *probe, const struct probe_mig *mig, struct gpu_record *gpu);

/*
 * Whether @probe shows that the instance no longer exists: MIG is disabled on its parent, or only
 * other instances are listed there.  An empty list proves nothing: nvidia-smi may have failed.
 */
bool instance_is_gone(const struct probe *probe, const struct gpu_record *gpu);

/* Whether MIG is enabled on the GPU, so that only its instances can be leased. */
bool gpu_is_parent(const struct snapshot *snapshot, const struct snapshot_gpu *gpu);

/*
 * Sets ->mig of every GPU, and ->row, ->exists and ->stranger of instances.  The caller has set
 * ->lease of all GPUs before.
 */
void instances_find(struct snapshot *snapshot, int64_t now_ms);

/*
 * Returns the state of an instance without a live lease, and sets ->culprit.  The probe lists the
 * instance, and its parent is known.
 */
enum gpu_state instance_judge(
	const struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms);

#endif
