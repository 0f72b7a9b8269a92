/*
 * The watchdog of a job in which gpulease becomes the command itself: a small process that ends the
 * job at its time limit and records in the history how the job has ended.  Before it ends the job
 * it says so on the job's stderr, if it can (end_notice.h).  It ends itself once the job is over.
 *
 * It is also the witness of the lease.  It holds the FIFO for writing until its own search finds no
 * process of the job that does not hold the FIFO (leftover.h).  Until then the FIFO tells all
 * readers that the lease is not over, also readers that cannot see the job's processes.
 *
 * A lease whose owner is older than it, a shell or an adopted process, always has a watchdog: it
 * holds the FIFO, which the owner does not, and gives the lease back when the owner has ended.  The
 * watchdog of a shell also ends when the lease of the shell is given back.
 *
 * If it is killed, the job has no time limit any more, its end is recorded by the next process that
 * takes the GPUs, and that process searches for leftovers itself (commit_look()).
 *
 * It has no more rights than the user's other processes: it opens all that it needs of the state
 * directory before it gives up the program's group.  Only the watchdog of a shell keeps the group:
 * it has to give the lease back and to ring the bells of the waiters.
 */
#ifndef GPULEASE_WATCHDOG_H
#define GPULEASE_WATCHDOG_H

#include "gpuset.h"
#include "statedir.h"
#include "use_watch.h"

struct watchdog_order {
	const struct statedir *dir;
	uint64_t job;
	struct owner
		owner; /* this process, which becomes the command, or an adopted process */
	struct gpuset gpus;          /* of the lease */
	const char *gpu_names;       /* of these GPUs: "0,3" */
	const struct ticket *ticket; /* of a job without GPUs, which has no lease; NULL */
	int live_fd;  /* the FIFO of the job's own lease; -1: it has none */
	bool is_step; /* of another job's lease */
	bool is_shell; /* the owner is a shell: it survives; what it started and the lease end */
	bool is_told;               /* the job's end is in the history already */
	int64_t limit_ms, grace_ms; /* limit 0: none */
	struct use_words *use;      /* NULL: the use of the GPUs is not watched */
	int64_t use_interval_ms;
};

/*
 * Starts the watchdog by forking twice: it is no child of the command.  Returns 0, or a negative
 * errno; no watchdog runs then.
 */
MUST_CHECK int watchdog_start(const struct watchdog_order *order);

#endif
