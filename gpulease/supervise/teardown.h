/*
 * Ending a command with all that it has started.  A step function: it never waits.
 *
 * First TERM goes to the command and to its descendants in its process group, with CONT, so that
 * stopped ones can act on it.  Once the command has ended, TERM goes to its descendants in other
 * groups.  After the grace KILL goes to all that is left, and to all processes that carry the
 * lease's token.  This goes on until there is no descendant, and no other process that holds the
 * lease's FIFO or carries its tag or token.
 *
 * It never signals this process, nor a process of its process group that is no descendant of it,
 * such as the script that called it.
 */
#ifndef GPULEASE_TEARDOWN_H
#define GPULEASE_TEARDOWN_H

#include "broker.h"
#include "tree.h"

enum { TEARDOWN_BUT_MAX = PROBER_CHILDREN + 1 };

struct teardown {
	struct broker *broker; /* of the lease */
	uint32_t
		helper; /* a child that is no part of the job, like nvidia-smi; 0: none */
	int64_t grace_ms;
	pid_t command; /* 0: it has ended */
	pid_t group;   /* the process group that got TERM first; 0: all got it at once */
	int64_t begun_ms;  /* when TERM was sent; 0: not yet */
	int64_t alone_ms;  /* since when there is no descendant; 0: there was one */
	bool rest_is_told; /* descendants in other groups have got TERM, too */
	unsigned rounds;   /* of KILL */
	int fifo_fd;       /* the FIFO, open for reading only; -1: not yet */
};

#define TEARDOWN_OF(broker_, grace_) \
	((struct teardown){ .broker = (broker_), .grace_ms = (grace_), .fifo_fd = -1 })

enum teardown_outcome { TEARDOWN_LATER = 1 };

/*
 * Does what is due.  Returns 0 when nothing is left, or nothing that can be found.  TEARDOWN_LATER:
 * call it again at *@ret_wake_ms (CLOCK_BOOTTIME), or when a child of this process has ended; the
 * caller has reaped the child before, and has set ->command to 0 if it was the command.
 *
 * Closes the broker's own descriptor of the FIFO as soon as no descendant is left.
 */
MUST_CHECK int teardown_step(
	struct teardown *teardown, int64_t now_ms, int64_t *ret_wake_ms);

void teardown_release(struct teardown *teardown);

#endif
