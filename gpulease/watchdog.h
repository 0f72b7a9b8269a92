/*
 * The watchdog of a job: a process of its own, so that the job need not have a parent.  It
 * ends the job at its time limit, which it says on stderr where it can (announce.h), and itself
 * with the job, whose end it tells the history.
 *
 * It is also the witness of the lease.  It holds the FIFO for writing until its own look finds no
 * process of the job that does not hold the FIFO (leftover.h).  Until then the FIFO tells all
 * readers that the lease is not over, also readers that cannot see the job's processes.  If it is
 * killed, the process that is about to take the GPUs looks instead (commit_look()).
 *
 * It is one more process of the user's and has no more rights than those: what it needs of
 * the state directory it opens before it gives up the program's group.  The one of a shell
 * keeps the group: it has to give the lease back and to ring for those who wait.
 */
#ifndef GPULEASE_WATCHDOG_H
#define GPULEASE_WATCHDOG_H

#include "gpuset.h"
#include "statedir.h"

struct watchdog_order {
	const struct statedir *dir;
	uint64_t job;
	struct owner owner; /* this process, which will be the command, or one adopted */
	struct gpuset gpus; /* of its lease, and how they are called: "0,3" */
	const char *gpu_names;
	int live_fd;   /* the FIFO of the job's own lease; -1: there is none */
	bool is_step;  /* of a lease that is not its own */
	bool is_shell; /* which is spared: what it has started ends, and the lease */
	bool is_told;  /* the job's end is in the history already */
	int64_t limit_ms, grace_ms; /* limit 0: none */
};

/*
 * Starts it, forked twice: the command never sees it as a child.  0 or a negative errno; no
 * watchdog runs then.
 */
MUST_CHECK int watchdog_start(const struct watchdog_order *order);

#endif
