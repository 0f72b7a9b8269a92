/*
 * Ending all that a command has started: TERM to it and to its descendants in its process
 * group, with CONT, so that those who are stopped can act on it; once it has ended, to those of
 * its descendants that have not been told; after the grace KILL to whatever is left, and to
 * all that carries the lease's token.  Then until nothing is left: no descendant, and no other
 * process that holds the lease's FIFO or carries its tag or token.  A step function: never waits.
 *
 * Never touched is this process, and who is in its process group without being its descendant,
 * such as the script that called it.
 */
#ifndef GPULEASE_TEARDOWN_H
#define GPULEASE_TEARDOWN_H

#include "broker.h"
#include "tree.h"

enum { TEARDOWN_BUT_MAX = PROBER_CHILDREN + 1 };

struct teardown {
	struct broker *broker; /* whose lease it is */
	uint32_t
		helper; /* a child that is no part of the job, beside nvidia-smi; 0: none */
	int64_t grace_ms;
	pid_t command;     /* 0: it has ended */
	pid_t group;       /* that was told; 0: none, all are told */
	int64_t begun_ms;  /* when TERM was sent; 0: not yet */
	int64_t alone_ms;  /* since when no descendant has been left; 0: one is */
	bool rest_is_told; /* likewise those in other groups */
	unsigned rounds;   /* of killing */
	int fifo_fd;       /* the FIFO for reading only; -1: not yet */
};

#define TEARDOWN_OF(broker_, grace_) \
	((struct teardown){ .broker = (broker_), .grace_ms = (grace_), .fifo_fd = -1 })

/*
 * Goes on.  0: nothing is left.  TEARDOWN_LATER: come back at *@ret_wake_ms (CLOCK_BOOTTIME), or
 * when a child of this process has ended; it has been waited for, and ->command is 0 once it
 * was the command.
 *
 * The broker's own descriptor of the FIFO is given up as soon as no descendant is left.
 */
enum { TEARDOWN_LATER = 1 };
MUST_CHECK int teardown_step(
	struct teardown *teardown, int64_t now_ms, int64_t *ret_wake_ms);

void teardown_release(struct teardown *teardown);

#endif
