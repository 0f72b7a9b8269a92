/*
 * A machine that runs jobs in simulated time: at each arrival and each end an order decides which
 * of the waiting jobs start.
 */
#ifndef GPULEASE_TESTS_MACHINE_H
#define GPULEASE_TESTS_MACHINE_H

#include "workload.h"

enum order {
	ORDER_FIFO, /* strictly one after the other */
	ORDER_SKIP, /* every job that fits starts; whole GPUs only */
	ORDER_BARE, /* what gpulease does */
	ORDER_PLAN, /* the same, with DEFAULT_LIMIT_MS for jobs without a time limit */
	ORDERS
};

struct outcome {
	double utilization; /* of the GPUs, from the first to the last arrival */
	double mean_wait_s, p99_wait_s, longest_wait_s;
	double worst_slowdown; /* (wait + run) / run; jobs below a minute count as one */
	unsigned overfull;     /* how often a GPU had more than its share or memory */
	unsigned stranded;     /* how many jobs never started */
};

/* Runs the @workload's @jobs until the last has ended; sets their start times and GPUs. */
struct outcome machine_run(
	const struct workload *workload, struct job *jobs, enum order order);

#endif
