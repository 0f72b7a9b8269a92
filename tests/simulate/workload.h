/*
 * A synthetic mix of jobs, as on shared machines for machine learning: most want one GPU; half
 * run for less than a quarter of an hour and a few for days; time limits are wrong; jobs arrive
 * at random, day and night.  The same seed gives the same jobs.
 */
#ifndef GPULEASE_TESTS_WORKLOAD_H
#define GPULEASE_TESTS_WORKLOAD_H

#include "policy.h"

enum { CARD_MIB = 81920, GRACE_MS = 10000, WORKLOAD_USERS = 12 };

/* The default limit that an administrator may set for jobs without a time limit. */
#define DEFAULT_LIMIT_MS INT64_C(86400000)

struct job {
	int64_t arrival_ms;
	int64_t run_ms;   /* a job that reaches its limit is ended there */
	int64_t limit_ms; /* 0: none */
	uint32_t uid;
	unsigned gpus;
	struct need need; /* of each */
	int64_t start_ms; /* -1: not started */
	int64_t late_ms;  /* by so much it counts as having come later */
	bool is_late;     /* that is settled: it had to wait */
	unsigned kind;    /* jobs of a kind take about the same time; 0: it is of none */
	bool fails;       /* it ends early, and says nothing of its kind */
	/* when it was foretold to start usually, once it had to wait; 0: that was not known */
	int64_t from_ms, to_ms;
	struct gpuset on;
};

struct workload {
	size_t jobs;
	unsigned gpus;         /* of the machine */
	unsigned load_percent; /* average need of the jobs, of what the machine can do */
	uint64_t seed;
	bool has_shares; /* half of the jobs declare a share or memory */
};

/* Fills @jobs, in the order of their arrival. */
void workload_make(const struct workload *workload, struct job *jobs);

/*
 * Fills @jobs with those of DAYS days, of which user FLOODER submits FLOOD at once on each morning,
 * and the other users OTHERS in the course of each day.
 */
enum { FLOOD_DAYS = 28, FLOOD = 70, OTHERS = 16, FLOODER = 100 };
enum { FLOOD_JOBS = FLOOD_DAYS * (FLOOD + OTHERS) };
void workload_make_flood(uint64_t seed, struct job jobs[FLOOD_JOBS]);

/*
 * As workload_make(), but each job is of one of KINDS kinds, which has its number of GPUs, its
 * limit, and a usual length.
 */
enum { KINDS = 48 };
void workload_make_kinds(const struct workload *workload, struct job *jobs);

/* How many GPUs the job takes from others: by memory or by share, whichever is more. */
double job_weight(const struct job *job);

#endif
