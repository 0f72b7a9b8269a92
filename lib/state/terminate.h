/*
 * Ending a job: TERM, after the grace KILL, then KILL for the processes that it has left, until its
 * lease is over.  The watchdog of a time limit and --cancel use this.  It is a step function, which
 * never waits.
 *
 * If the owner leads its process group the whole group gets the signal, unless the owner is the
 * supervisor of its command and lives.  A supervisor passes signals on, so no process gets one
 * twice.  It is also continued, because it may have been stopped together with its command.  Once
 * the supervisor is dead the command is ended in its place.
 */
#ifndef GPULEASE_TERMINATE_H
#define GPULEASE_TERMINATE_H

#include "liveness.h"

struct termination {
	struct owner owner;
	bool is_step; /* a step of a lease: end its process, not the others of the lease */
	bool is_supervised; /* the owner is the parent of the command */
	bool is_forced;     /* whatever the real user of the owner */
	int64_t grace_ms;
	int64_t begun_ms, killed_ms; /* when TERM and KILL were sent; 0: not yet */
	bool was_alive; /* the job itself, when it got TERM: it has not ended by itself */
	unsigned rounds; /* how often KILL was sent */
};

/* LATER: call again at *@ret_wake_ms, or when the liveness of the job changes. */
enum terminate_outcome { TERMINATE_LATER = 1 };

/*
 * Takes the next step of ending @termination->owner.  @job is its liveness.  Returns 0 when it is
 * over, TERMINATE_LATER, or a negative errno (-EPERM: this process may not end it, or it has
 * another real user than the record says; -ENOTSUP: it lives in a pid namespace that this process
 * cannot see).
 */
MUST_CHECK int terminate_step(struct termination *termination, const struct liveness *job,
	uint64_t my_pidns, int64_t now_ms, int64_t *ret_wake_ms);

#endif
