/*
 * A machine that runs jobs in simulated time: at each arrival and each end an order decides which
 * of the waiting jobs start.
 */
#ifndef GPULEASE_TESTS_MACHINE_H
#define GPULEASE_TESTS_MACHINE_H

#include "config.h"
#include "usual.h"
#include "workload.h"

/* fair-share = 15m/7d/24h */
extern const struct config_share machine_share;

enum order {
	ORDER_FIFO, /* strictly one after the other */
	ORDER_SKIP, /* every job that fits starts; whole GPUs only */
	ORDER_BARE, /* what gpulease does */
	ORDER_PLAN, /* the same, with DEFAULT_LIMIT_MS for jobs without a time limit */
	ORDERS,
	ORDER_FAIR,     /* ORDER_PLAN with fair-share; only for machine_run_flood() */
	ORDER_FORETOLD, /* ORDER_BARE, and each job that waits is told its usual start */
};

/* The median and the mean of the waits, and the longest wait, of some of the jobs. */
struct waits {
	double median_s, mean_s, longest_s;
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

/* Of the jobs that were told their usual start: how many started before, in and after it. */
struct foretold_count {
	unsigned before, in, after;
};

struct foretold_count machine_count_foretold(const struct job *jobs, size_t count);

/* Returns the waits of user FLOODER's @jobs (@is_flooder), or of all others'. */
struct waits machine_waits(const struct job *jobs, size_t count, bool is_flooder);

#endif
