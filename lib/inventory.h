/*
 * From what nvidia-smi shows to what the state directory knows: lease files for new GPUs, and
 * in record 0 of each the copies that readers without a probe go by.
 */
#ifndef GPULEASE_INVENTORY_H
#define GPULEASE_INVENTORY_H

#include "operands.h"
#include "snapshot.h"

/*
 * Gives every GPU and MIG instance of @view's probe a lease file and slot, and refreshes the
 * copies where they differ (a new boot, another index); a file that is locked is left for the
 * next time.  An instance that is gone is marked as not seen in this boot; it keeps its slot.
 * When all slots are taken a new GPU gets one that can be reused (slots.h), or none; @token is that
 * of this process.  Returns how many files changed, or a negative errno.
 */
MUST_CHECK int inventory_adopt(struct snapshot *view, const char *token);

/* The slots that exist in this boot and whose model contains @model, in any case. */
struct gpuset inventory_by_model(const struct snapshot *view, const char *model);

/*
 * Bounds @set by a list as CUDA_VISIBLE_DEVICES has it: indices or uuids (whole, or a unique
 * prefix), the first invalid entry ends it.  A GPU with MIG enabled is its first instance.
 */
struct gpuset inventory_by_visible(const struct snapshot *view, const char *list);

/*
 * How many GPUs and instances of the probe cannot be leased because all 128 slots are taken, also
 * by GPUs that are gone.
 */
unsigned inventory_count_slotless(const struct snapshot *view);

/*
 * The slots of all that exists in this boot and can be leased: GPUs and instances, but no GPU
 * with MIG enabled.
 */
struct gpuset inventory_all(const struct snapshot *view);

/*
 * How many of @set count for a job that wants @gpus: more than one only of those that are no
 * instances.
 */
unsigned inventory_count_for(
	const struct snapshot *view, const struct gpuset *set, unsigned gpus);

/* The slot of the GPU with nvidia-smi's index @index, -1 where there is none. */
int inventory_by_index(const struct snapshot *view, uint32_t index);

/*
 * Adds what @operand names to @set: GPUs, a GPU with MIG enabled together with its instances,
 * or one instance.  0, or -ENOENT where one is not there; @why says which.
 */
MUST_CHECK int inventory_by_operand(const struct snapshot *view,
	const struct operand *operand, struct gpuset *set, struct why *why);

/* The slots of its MIG instances, and the one that nvidia-smi numbers @device; -1: none. */
struct gpuset inventory_instances(const struct snapshot *view, uint32_t index);
int inventory_by_instance(const struct snapshot *view, uint32_t index, uint32_t device);

/* The slot of the one GPU whose uuid begins with @text, -1: none, or more than one. */
int inventory_by_uuid(const struct snapshot *view, const char *text);

#endif
