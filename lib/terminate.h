/*
 * Ending a job: TERM, after the grace KILL, then whatever it left behind, until its lease is
 * over.  Used by the watchdog of a time limit and by --cancel.  A step function: never waits.
 *
 * An owner that leads its process group takes the group along, unless it is the supervisor of
 * its command and lives.  A supervisor passes signals on, so no process gets one twice; it is also
 * continued, because it may have been stopped together with its command.  Once the supervisor is
 * dead the command is ended in its place.
 */
#ifndef GPULEASE_TERMINATE_H
#define GPULEASE_TERMINATE_H

#include "life.h"

struct termination {
	struct owner owner;
	bool is_step; /* a step of a lease: its process alone, not all that is the lease's */
	bool is_supervised; /* the owner is the parent of the command */
	bool is_forced;     /* the real user of the owner does not matter */
	int64_t grace_ms;
	int64_t begun_ms, killed_ms; /* when TERM and KILL were sent; 0: not yet */
	unsigned rounds;             /* of killing what is left */
};

/*
 * Goes on with ending @termination->owner, as far as @life says it is needed.  0: it is over;
 * TERMINATE_LATER: come back at *@ret_wake_ms, or when @life changes; -EPERM: not ours to
 * end, or it has another real user than the record says; -ENOTSUP: it lives in a pid namespace
 * that this process cannot see.
 */
enum { TERMINATE_LATER = 1 };
MUST_CHECK int terminate_step(struct termination *termination, const struct life *life,
	uint64_t my_pidns, int64_t now_ms, int64_t *ret_wake_ms);

#endif
