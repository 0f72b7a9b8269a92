/*
 * A machine that runs jobs in simulated time: at each arrival and each end an order says who
 * of those that wait starts.
 */
#ifndef GPULEASE_TESTS_MACHINE_H
#define GPULEASE_TESTS_MACHINE_H

#include "workload.h"

enum order {
	ORDER_FIFO, /* strictly one after the other */
	ORDER_SKIP, /* whoever fits starts; whole GPUs only */
	ORDER_BARE, /* what gpulease does */
	ORDER_PLAN, /* the same, where who gives no time limit gets one of DEFAULT_LIMIT_MS */
	ORDERS
};

struct outcome {
	double utilization; /* of the GPUs, from the first to the last arrival */
	double mean_wait_s, p99_wait_s, longest_wait_s;
	double worst_slowdown; /* of jobs of a minute: (wait + run) / run; shorter as such */
	unsigned overfull;     /* how often a GPU had more than it can bear */
	unsigned stranded;     /* how many never started */
};

/* Runs the @workload's @jobs to the last one's end; they are marked with what came. */
struct outcome machine_run(
	const struct workload *workload, struct job *jobs, enum order order);

#endif
