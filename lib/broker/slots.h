/*
 * Gives slots of GPUs that are gone to new GPUs.  There are 128 slots, and each card and MIG
 * instance that this machine ever had keeps its slot.
 *
 * A GPU is gone if the probe does not list it, it is not paused, and it was last seen in another
 * boot, or is a MIG instance that is known to be gone.  A slot can be reused, too, if its link
 * leads to no lease file.
 *
 * Waiting tickets, leases and planning processes name GPUs by their slots.  So a slot is reused
 * only while no other job lives: there is no lease, no ticket of this boot and no FIFO except those
 * of the process itself.  A process that takes a ticket at that moment knows its GPUs by their
 * UUIDs, see struct broker_choice.
 *
 * The flock of the folder gpu/ lets one process at a time reuse slots; no process waits for it.
 * This process also locks the files with leases that name the slot, and records the ends of these
 * leases.  Then one rename(2) makes the link lead to the new GPU.  A crash before it leaves the
 * slot as it was.
 */
#ifndef GPULEASE_SLOTS_H
#define GPULEASE_SLOTS_H

#include "snapshot.h"

/* Outcomes of slots_reuse(), beside 0 and negative errnos. */
enum slots_outcome {
	SLOTS_NONE = 220, /* no slot can be reused now */
};

/*
 * Gives GPU @uuid, which has a lease file, the slot of a GPU that is gone according to @view and
 * its probe.  @token is that of this process's job, or "".  It reads @view again, and so must the
 * caller.  Returns 0, SLOTS_NONE, or a negative errno.
 */
MUST_CHECK int slots_reuse(struct snapshot *view, const char *uuid, const char *token);

#endif
