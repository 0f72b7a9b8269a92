/*
 * Steps: gpulease inside a lease uses that lease instead of the queue.
 */
#ifndef GPULEASE_STEP_H
#define GPULEASE_STEP_H

#include "cli.h"
#include "snapshot.h"

/*
 * The live lease of this user in @view that this process belongs to, by any of the signs of
 * kin.h; NULL where it belongs to none.
 */
const struct snapshot_lease *step_find_lease(const struct snapshot *view);

/*
 * Whether there is such a lease, for a process that may belong to a lease of another state
 * directory.  So an ancestor counts only if the process carries no other token or tag.
 */
bool step_is_around(const struct snapshot *view);

/*
 * Whether a step of the lease @around can be what the command line asks for.  0, or
 * EXIT_MISUSE after it was told which option to leave out.
 */
MUST_CHECK int step_check(const struct settings *settings, const struct lease *around);

/*
 * From here on this process, and what it starts, is part of no lease: it shows neither token nor
 * tag of the one around it, and that one's GPUs do not bound it.
 */
void step_leave(void);

/* The first @count GPUs of the lease. */
struct gpuset step_first_gpus(const struct gpuset *gpus, unsigned count);

#endif
