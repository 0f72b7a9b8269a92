/*
 * The inventory: which GPUs and MIG instances there are, and how a user names them.
 *
 * It makes lease files for GPUs that the probe shows and that have none.  It also keeps record 0 of
 * each lease file up to date: a copy of index, model and memory for readers without a probe.
 */
#ifndef GPULEASE_INVENTORY_H
#define GPULEASE_INVENTORY_H

#include "operands.h"
#include "snapshot.h"

/*
 * Gives each GPU and MIG instance of @view's probe a lease file and a slot, and rewrites record 0
 * where it differs (a new boot, another index).  A file that is locked keeps its record 0 until the
 * next call.  An instance that is gone is marked as not seen in this boot; it keeps its slot.
 *
 * If all slots are taken, a new GPU gets one that can be reused (slots.h), or none; @token is that
 * of this process, or "".  Returns how many files changed, or a negative errno.
 */
MUST_CHECK int inventory_adopt(struct snapshot *view, const char *token);

/*
 * Returns the slots of inventory_all() with @model in the name of the model; upper and lower case
 * are the same.
 */
struct gpuset inventory_by_model(const struct snapshot *view, const char *model);

/*
 * Returns the slots that a list names as CUDA_VISIBLE_DEVICES does: indices or uuids (whole, or a
 * unique prefix).  The first invalid entry ends the list.  A GPU with MIG enabled stands for its
 * first instance.
 */
struct gpuset inventory_by_visible(const struct snapshot *view, const char *list);

/*
 * Returns how many GPUs and instances of the probe cannot be leased because all 128 slots are
 * taken, some of them by GPUs that are gone.
 */
unsigned inventory_count_slotless(const struct snapshot *view);

/*
 * Returns the slots of all GPUs and MIG instances that exist in this boot and can be leased.  A GPU
 * with MIG enabled cannot; its instances are leased instead.
 */
struct gpuset inventory_all(const struct snapshot *view);

/*
 * Returns how many GPUs of @set a job for @gpus GPUs could get.  A job for several GPUs gets no MIG
 * instances.
 */
unsigned inventory_count_for(
	const struct snapshot *view, const struct gpuset *set, unsigned gpus);

/* Returns the slot of the GPU with nvidia-smi's index @index; -1: there is none. */
int inventory_by_index(const struct snapshot *view, uint32_t index);

/*
 * Adds the slots that @operand names to @set: GPUs (with its instances, if a GPU has MIG enabled),
 * or one instance.  Returns 0; or -ENOENT with the reason in @why: one of them does not exist.
 */
MUST_CHECK int inventory_by_operand(const struct snapshot *view,
	const struct operand *operand, struct gpuset *set, struct why *why);

/* Returns the slots of the MIG instances of the GPU with index @index. */
struct gpuset inventory_instances(const struct snapshot *view, uint32_t index);

/*
 * Returns the slot of the instance that nvidia-smi numbers @device on that GPU; -1: there is none.
 */
int inventory_by_instance(const struct snapshot *view, uint32_t index, uint32_t device);

/*
 * Returns the slot of the one GPU with a uuid that begins with @text; -1: none, or more than one.
 */
int inventory_by_uuid(const struct snapshot *view, const char *text);

#endif
