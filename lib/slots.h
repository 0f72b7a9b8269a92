/*
 * The slots of GPUs that are gone, for GPUs that have none: there are 128, and each MIG instance
 * and each card that was ever here has one.
 *
 * A slot that is gone is one whose GPU the probe does not list, that was last seen in another
 * boot (or, an instance, is known to be gone), and is not paused; or one that leads to no lease
 * file.  Waiting tickets, leases and processes that decide name GPUs by their slots.  So it is
 * reused only while no job lives: no lease, no ticket of this boot and no FIFO, but for those of
 * the process itself.  A process that joins in that moment finds out by itself, see ->moved in
 * snapshot.h.
 *
 * The flock of the folder gpu/ makes reusing single-flight; it is not waited for.  The files
 * that name the slot are locked, too, the ends that they still have to tell are told, and then
 * one rename(2) makes the link lead elsewhere.  A crash before it leaves the slot as it was.
 */
#ifndef GPULEASE_SLOTS_H
#define GPULEASE_SLOTS_H

#include "snapshot.h"

/*
 * Gives the slot of a GPU that is gone by @view and its probe to GPU @uuid, whose lease file is
 * there.  @token is the job of the process itself, "": it has none.  @view may be read anew; the
 * caller reads it again.  0; LEASE_NO_SLOT: none can be reused now; or a negative errno.
 */
MUST_CHECK int slots_reuse(struct snapshot *view, const char *uuid, const char *token);

#endif
