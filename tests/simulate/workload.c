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

/*
 * Of 20 jobs 17 take about the usual time of their kind, two fail early, and one takes up to three
 * times as long.
 */
static int64_t random_length(const struct job *kind, bool *ret_fails)
{
	unsigned at = below(20);
	double ms = (double)kind->run_ms;

	*ret_fails = at < 2;
	if (*ret_fails)
		return (int64_t)(ms * factor(0.02, 0.5));
	ms *= at < 19 ? exp(0.2 * normal()) : factor(1.2, 3);
	return kind->limit_ms ? min_i64((int64_t)ms, kind->limit_ms) : (int64_t)ms;
}

void workload_make_kinds(const struct workload *workload, struct job *jobs)
{
	struct job kinds[KINDS] = { { .gpus = 0 } };

	random_state = (workload->seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned i = 0; i < KINDS; i++) {
		kinds[i] = (struct job){ .gpus = random_gpus(),
			.run_ms = random_run_ms(),
			.need = NEED_WHOLE,
			.uid = 1 + below(WORKLOAD_USERS),
			.kind = i + 1,
			.start_ms = -1 };
		if (chance(80))
			kinds[i].limit_ms =
				(int64_t)((double)kinds[i].run_ms * factor(1.5, 10));
	}
	for (size_t i = 0; i < workload->jobs; i++) {
		jobs[i] = kinds[below(1 + below(KINDS))];
		jobs[i].run_ms = random_length(&jobs[i], &jobs[i].fails);
	}
	spread(workload, jobs);
}

static int compare_arrivals(const void *a, const void *b)
{
	const struct job *x = a, *y = b;

	return (x->arrival_ms > y->arrival_ms) - (x->arrival_ms < y->arrival_ms);
}

void workload_make_flood(uint64_t seed, struct job jobs[FLOOD_JOBS])
{
	random_state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (size_t i = 0; i < FLOOD_JOBS; i++) {
		int64_t day = (int64_t)i / (FLOOD + OTHERS),
			at = (int64_t)(i % (FLOOD + OTHERS));

		/* one job a second from nine o'clock on; the others from eight to eight */
		jobs[i] = (struct job){ .gpus = random_gpus(),
			.run_ms = random_run_ms(),
			.need = NEED_WHOLE,
			.uid = at < FLOOD ? FLOODER : 1 + below(WORKLOAD_USERS),
			.arrival_ms = day * DAY_MS,
			.start_ms = -1 };
		jobs[i].arrival_ms +=
			at < FLOOD ? 9 * 60 * MINUTE_MS + at * 1000
				   : 8 * 60 * MINUTE_MS + below(12 * 60 * MINUTE_MS);
		random_limit(&jobs[i]);
	}
	qsort(jobs, FLOOD_JOBS, sizeof(*jobs), compare_arrivals);
}
