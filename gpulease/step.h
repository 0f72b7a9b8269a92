/*
 * Steps: gpulease inside a lease uses that lease instead of the queue.
 */
#ifndef GPULEASE_STEP_H
#define GPULEASE_STEP_H

#include "snapshot.h"

/*
 * The live lease of this user in @view that this process belongs to, by any of the signs of
 * kin.h; NULL where it belongs to none.
 */
const struct snapshot_lease *step_find_lease(const struct snapshot *view);

/* The first @count GPUs of the lease. */
struct gpuset step_first_gpus(const struct gpuset *gpus, unsigned count);

#endif
