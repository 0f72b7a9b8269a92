/*
 * Gives slots of GPUs that are gone to GPUs that have none: there are 128 slots, and each card and
 * MIG instance that was ever here has one.
 *
 * A GPU is gone if the probe does not list it, it is not paused, and it was last seen in another
 * boot, or is an instance that is known to be gone.  A slot that leads to no lease file can be
 * reused, too.  Waiting tickets, leases and processes that plan name GPUs by their slots.  So a
 * slot is reused only while no other job lives: there is no lease, no ticket of this boot and no
 * FIFO but those of the process itself.  A process that takes a ticket in that moment notices the
 * change, see ->moved in snapshot.h.
 *
 * The flock of the folder gpu/ makes reusing single-flight; no process waits for it.  The process
 * also locks the files with leases that name the slot, and tells the ends of these leases.  Then
 * one rename(2) makes the link lead elsewhere.  A crash before it leaves the slot as it was.
 */
#ifndef GPULEASE_SLOTS_H
#define GPULEASE_SLOTS_H

#include "snapshot.h"

/*
 * Gives GPU @uuid, which has a lease file, the slot of a GPU that is gone by @view and its probe.
 * @token is that of this process's job; "": it has none.  Reads @view again; the caller has to do
 * so afterwards, too.  0; LEASE_NO_SLOT: no slot can be reused now; or a negative errno.
 */
MUST_CHECK int slots_reuse(struct snapshot *view, const char *uuid, const char *token);

#endif
