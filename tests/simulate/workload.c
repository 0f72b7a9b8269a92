#include "workload.h"

#include <math.h>

enum { MINUTE_MS = 60000, DAY_MS = 24 * 60 * MINUTE_MS };

static uint64_t random_state;

/* Uniform between 0 and 1, never 0. */
static double even(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (double)((random_state * UINT64_C(2685821657736338717) >> 11) + 1) /
	       (double)(UINT64_C(1) << 53);
}

static unsigned below(unsigned bound)
{
	return (unsigned)(even() * bound) % bound;
}

static bool chance(unsigned percent)
{
	return below(100) < percent;
}

static double normal(void)
{
	double radius = sqrt(-2 * log(even()));

	return radius * cos(2 * 3.14159265358979323846 * even());
}

/* Between @low and @high, uniform on a logarithmic scale. */
static double factor(double low, double high)
{
	return low * exp(even() * log(high / low));
}

static unsigned random_gpus(void)
{
	unsigned at = below(100);

	return at < 80 ? 1 : at < 91 ? 2 : at < 97 ? 4 : 8;
}

/* Log-normal: half of the jobs take at most 15 minutes, one in a hundred 20 hours or more. */
static int64_t random_run_ms(void)
{
	double ms = 15 * MINUTE_MS * exp(1.9 * normal());

	return (int64_t)fmin(fmax(ms, 5000), 3.0 * DAY_MS);
}

/*
 * Most jobs have a limit far above their run time, a fifth none, a few one that is too short.  A
 * job that needs more than the default limit has a limit, so the jobs are the same without a
 * default.
 */
static void random_limit(struct job *job)
{
	unsigned at = below(100);

	if (at < 20 && job->run_ms < DEFAULT_LIMIT_MS)
		return;
	if (at < 92) {
		job->limit_ms = (int64_t)((double)job->run_ms * factor(1.1, 10));
	} else {
		job->limit_ms = (int64_t)((double)job->run_ms * factor(0.3, 1));
		job->run_ms = job->limit_ms;
	}
}

static struct need random_share(void)
{
	static const unsigned percents[] = { 10, 25, 25, 50, 50 };
	struct need need = { .percent = percents[below(ARRAY_SIZE(percents))] };

	if (chance(50))
		need = (struct need){ .mib = (uint64_t)(1024 * factor(4, 60)) };
	else if (chance(30))
		need.mib = (uint64_t)(1024 * factor(2, 40));
	return need;
}

double job_weight(const struct job *job)
{
	double share = job->need.percent / 100.0;
	double memory = (double)need_mib(&job->need, CARD_MIB) / CARD_MIB;

	return job->gpus * fmax(share, memory);
}

/* Spreads the arrivals: gaps are exponential, and their sum follows from the load. */
static void spread(const struct workload *workload, struct job *jobs)
{
	double work_ms = 0, gaps = 0, span_ms;

	for (size_t i = 0; i < workload->jobs; i++) {
		work_ms += (double)jobs[i].run_ms * job_weight(&jobs[i]);
		gaps -= log(even());
		/* in thousandths of a mean gap for now */
		jobs[i].arrival_ms = (int64_t)(gaps * 1000);
	}
	span_ms = work_ms * 100 / workload->gpus / workload->load_percent;
	for (size_t i = 0; i < workload->jobs; i++)
		jobs[i].arrival_ms =
			(int64_t)((double)jobs[i].arrival_ms / 1000 / gaps * span_ms);
}

void workload_make(const struct workload *workload, struct job *jobs)
{
	random_state = (workload->seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t i = 0; i < workload->jobs; i++) {
		jobs[i] = (struct job){ .gpus = random_gpus(),
			.run_ms = random_run_ms(),
			.need = NEED_WHOLE,
			/* a few users have most of the jobs; root has none */
			.uid = 1 + below(1 + below(WORKLOAD_USERS)),
			.start_ms = -1 };
		random_limit(&jobs[i]);
		if (workload->has_shares && jobs[i].gpus <= 2 && chance(60))
			jobs[i].need = random_share();
	}
	spread(workload, jobs);
}
