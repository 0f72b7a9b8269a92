/*
 * From what nvidia-smi shows to what the state directory knows: lease files for new GPUs, and
 * in record 0 of each the copies that readers without a probe go by.
 */
#ifndef GPULEASE_INVENTORY_H
#define GPULEASE_INVENTORY_H

#include "snapshot.h"

/*
 * Gives every GPU of @view's probe a lease file and slot, and refreshes the copies where they
 * differ (a new boot, another index); a file that is locked is left for the next time.
 * Returns how many files changed, or a negative errno.
 */
MUST_CHECK int inventory_adopt(struct snapshot *view);

/* The slots that exist in this boot and whose model contains @model, in any case. */
struct gpuset inventory_by_model(const struct snapshot *view, const char *model);

/*
 * Bounds @set by a list as CUDA_VISIBLE_DEVICES has it: indices or uuids (whole, or a unique
 * prefix), the first invalid entry ends it.
 */
struct gpuset inventory_by_visible(const struct snapshot *view, const char *list);

/* The slots of all GPUs that exist in this boot. */
struct gpuset inventory_all(const struct snapshot *view);

/* The slot with nvidia-smi's index @index, -1 where there is none. */
int inventory_by_index(const struct snapshot *view, uint32_t index);

/* The slot of the one GPU whose uuid begins with @text, -1: none, or more than one. */
int inventory_by_uuid(const struct snapshot *view, const char *text);

#endif
