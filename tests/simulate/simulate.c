/*
 * simulate: compares the order in which gpulease starts jobs with other orders, on a realistic
 * mix of jobs.
 *
 *	simulate [--jobs N] [--seed N] [--gpus N] [--load PERCENT] [--shares] [--fair]
 *		[--foretold] [--markdown]
 *
 * Prints a table: strictly first in, first out; every job that fits starts (skip-ahead); and the
 * plan of gpulease itself, without and with a default time limit for the fifth of the jobs that
 * have none: while a job without a limit runs, no job can be started before the head.  --gpus:
 * without it 8, 64 and 128.  --shares: half of the jobs declare a share or memory; skip-ahead is
 * left out.  --markdown: only the table.
 *
 * A second table is about fair-share: 3 x 28 days on 8 GPUs, on which one user submits 70 jobs each
 * morning; the waits of this user and of all others, without and with fair-share = 15m/7d/24h.
 * --fair: only this table.
 *
 * A third table says how often the usual start that a waiting job is told (foretell.h) comes true.
 * --foretold: only this table.
 *
 * The results, as TAP: with the default limit the utilization is at least 97 % of skip-ahead's;
 * the longest wait is at most a quarter above that of strict FIFO, as orders differ in their
 * luck; and no GPU ever has more than its share or memory.
 */
#include "machine.h"
#include "../tools/tool.h"

#include <getopt.h>

enum { JOBS = 10000, SEED = 1, LOAD_PERCENT = 90, JOBS_MOST = 1000000 };

static const char *const names[ORDERS] = {
	[ORDER_FIFO] = "strict FIFO",
	[ORDER_SKIP] = "skip-ahead",
	[ORDER_BARE] = "gpulease",
	[ORDER_PLAN] = "gpulease, default limit 1 day",
};

static struct workload workload = {
	.jobs = JOBS,
	.seed = SEED,
	.load_percent = LOAD_PERCENT,
};
static bool is_markdown, is_only_fair, is_only_foretold;

static void print_head(void)
{
	static const char *const titles[] = { "GPUs", "order", "utilization", "mean wait",
		"p99 wait", "longest wait", "worst slowdown" };

	if (is_markdown)
		(void)printf(
			"| %s | %s | %s | %s | %s | %s | %s |\n|---|---|---|---|---|---|---|\n",
			titles[0], titles[1], titles[2], titles[3], titles[4], titles[5],
			titles[6]);
	else
		(void)printf("%4s  %-30s %12s %10s %10s %13s %15s\n", titles[0],
			titles[1], titles[2], titles[3], titles[4], titles[5], titles[6]);
}

static void print_row(enum order order, const struct outcome *outcome)
{
	const char *form = is_markdown
				   ? "| %u | %s | %.1f %% | %.2f h | %.1f h | %.1f h | "
				     "%.0f |\n"
				   : "%4u  %-30s %10.1f %% %8.2f h %8.1f h %11.1f h "
				     "%15.0f\n";

	/* the form is one of two constants */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)printf(form, workload.gpus, names[order], 100 * outcome->utilization,
		outcome->mean_wait_s / 3600, outcome->p99_wait_s / 3600,
		outcome->longest_wait_s / 3600, outcome->worst_slowdown);
#pragma GCC diagnostic pop
}

static void judge(const struct outcome outcomes[ORDERS])
{
	const struct outcome *plan = &outcomes[ORDER_PLAN], *fifo = &outcomes[ORDER_FIFO];
	const struct outcome *other = workload.has_shares ? fifo : &outcomes[ORDER_SKIP];

	(void)tap_result(plan->utilization >= 0.97 * other->utilization,
		"%u GPUs: the plan uses them at most 3 %% less than %s", workload.gpus,
		names[workload.has_shares ? ORDER_FIFO : ORDER_SKIP]);
	for (unsigned order = ORDER_BARE; order < ORDERS; order++)
		(void)tap_result(
			outcomes[order].longest_wait_s <= 1.25 * fifo->longest_wait_s,
			"%u GPUs, %s: the longest wait is at most 1.25 times strict FIFO's",
			workload.gpus, names[order]);
	for (unsigned order = 0; order < ORDERS; order++) {
		if (order == ORDER_SKIP && workload.has_shares)
			continue;
		(void)tap_result(!outcomes[order].overfull && !outcomes[order].stranded,
			"%u GPUs, %s: no GPU is overfull (%u times), all jobs start (%u do not)",
			workload.gpus, names[order], outcomes[order].overfull,
			outcomes[order].stranded);
	}
}

static void run_orders(void)
{
	autofree struct job *jobs = calloc(workload.jobs, sizeof(*jobs));
	struct outcome outcomes[ORDERS] = { { .overfull = 0 } };

	if (!jobs)
		die("no memory");
	for (unsigned order = 0; order < ORDERS; order++) {
		if (order == ORDER_SKIP && workload.has_shares)
			continue;
		workload_make(&workload, jobs);
		outcomes[order] = machine_run(&workload, jobs, (enum order)order);
		print_row((enum order)order, &outcomes[order]);
	}
	if (!is_markdown)
		judge(outcomes);
}

/* --- fair-share ------------------------------------------------------------------------- */

enum { ROUNDS = 3 };

static void print_fair_row(
	unsigned round, bool is_fair, double utilization, const struct waits waits[2])
{
	const char *form = is_markdown
				   ? "| %u | %s | %.1f %% | %.2f h | %.2f h | %.1f h | "
				     "%.2f h | %.2f h | %.1f h |\n"
				   : "%5u  %-10s %10.1f %% %10.2f h %8.2f h %9.1f h "
				     "%14.2f h %8.2f h %9.1f h\n";

	/* the form is one of two constants */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)printf(form, round + 1, is_fair ? "15m/7d/24h" : "none", 100 * utilization,
		waits[0].median_s / 3600, waits[0].mean_s / 3600,
		waits[0].longest_s / 3600, waits[1].median_s / 3600,
		waits[1].mean_s / 3600, waits[1].longest_s / 3600);
#pragma GCC diagnostic pop
}

static void print_fair_head(void)
{
	if (is_markdown)
		(void)printf(
			"\n| round | fair-share | utilization | others: median wait | mean "
			"| longest | the flooder: median wait | mean | longest |\n"
			"|---|---|---|---|---|---|---|---|---|\n");
	else
		(void)printf("round  fair-share  utilization  others: median     mean    "
			     "longest  flooder: median     mean    longest\n");
}

/* The outcome of all rounds, without ([0]) and with ([1]) fair-share. */
struct fair_sums {
	double utilization[2];
	struct waits waits[2][2]; /* of the others ([0]) and the flooder ([1]) */
	unsigned faults;
};

static void add_round(struct fair_sums *sums, unsigned fair,
	const struct outcome *outcome, const struct waits waits[2])
{
	sums->utilization[fair] += outcome->utilization;
	sums->faults += outcome->overfull + outcome->stranded;
	for (unsigned who = 0; who < 2; who++) {
		sums->waits[fair][who].median_s += waits[who].median_s;
		sums->waits[fair][who].mean_s += waits[who].mean_s;
	}
}

static void judge_fair(const struct fair_sums *sums)
{
	const struct waits *before = sums->waits[0], *after = sums->waits[1];

	(void)tap_result(after[0].median_s <= 0.5 * before[0].median_s,
		"fair-share: the others' median wait is at most half of that without");
	(void)tap_result(after[0].mean_s <= 0.9 * before[0].mean_s,
		"fair-share: the others' mean wait is at most 0.9 times that without");
	(void)tap_result(after[1].median_s <= 2 * before[1].median_s,
		"fair-share: the flooder's median wait is at most twice that without");
	(void)tap_result(sums->utilization[1] >= 0.97 * sums->utilization[0],
		"fair-share: the GPUs are used at most 3 %% less");
	(void)tap_result(
		!sums->faults, "fair-share: no GPU is overfull, and all jobs start");
}

static void run_fair(void)
{
	autofree struct job *jobs = calloc(FLOOD_JOBS, sizeof(*jobs));
	struct workload flood = { .jobs = FLOOD_JOBS, .gpus = 8 };
	struct fair_sums sums = { .faults = 0 };

	if (!jobs)
		die("no memory");
	print_fair_head();
	for (unsigned i = 0; i < 2 * ROUNDS; i++) {
		unsigned round = i / 2, fair = i % 2;
		struct outcome outcome;
		struct waits waits[2];

		workload_make_flood(workload.seed + round, jobs);
		outcome = machine_run(&flood, jobs, fair ? ORDER_FAIR : ORDER_PLAN);
		for (unsigned who = 0; who < 2; who++)
			waits[who] = machine_waits(jobs, FLOOD_JOBS, who == 1);
		print_fair_row(round, fair, outcome.utilization, waits);
		add_round(&sums, fair, &outcome, waits);
	}
	if (!is_markdown)
		judge_fair(&sums);
}

/* --- the usual start -------------------------------------------------------------------- */

/* Foretells the starts on machines of 8 to 128 GPUs, and judges how many came true. */
static void run_foretold(void)
{
	static const unsigned machines[] = { 8, 64, 128 };
	autofree struct job *jobs = calloc(workload.jobs, sizeof(*jobs));
	struct workload kinds = workload;

	if (!jobs)
		die("no memory");
	(void)printf(
		is_markdown
			? "\n| GPUs | jobs that were told | earlier | in time | later |\n"
			  "|---|---|---|---|---|\n"
			: "GPUs    told  earlier  in time    later\n");
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		struct foretold_count count;
		double all;

		kinds.gpus = machines[i];
		workload_make_kinds(&kinds, jobs);
		(void)machine_run(&kinds, jobs, ORDER_FORETOLD);
		count = machine_count_foretold(jobs, kinds.jobs);
		all = count.before + count.in + count.after;
		(void)printf(is_markdown ? "| %u | %.0f | %.0f %% | %.0f %% | %.0f %% |\n"
					 : "%4u  %6.0f  %5.0f %%  %5.0f %%  %5.0f %%\n",
			kinds.gpus, all, 100 * count.before / all, 100 * count.in / all,
			100 * count.after / all);
		if (is_markdown)
			continue;
		(void)tap_result(count.before + count.in >= 0.7 * all,
			"%u GPUs: of ten jobs that are told their usual start, seven "
			"start by its later time",
			kinds.gpus);
		if (kinds.gpus > 8)
			(void)tap_result(count.in >= 0.75 * all,
				"%u GPUs: three of four start between its two times",
				kinds.gpus);
	}
}

static bool take_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "jobs", required_argument, NULL, 'j' },
		{ "seed", required_argument, NULL, 's' },
		{ "gpus", required_argument, NULL, 'g' },
		{ "load", required_argument, NULL, 'l' },
		{ "shares", no_argument, NULL, 'p' },
		{ "fair", no_argument, NULL, 'f' },
		{ "foretold", no_argument, NULL, 't' },
		{ "markdown", no_argument, NULL, 'm' },
		{ 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'j')
			workload.jobs = (size_t)number(optarg, "jobs");
		else if (option == 's')
			workload.seed = number(optarg, "seed");
		else if (option == 'g')
			workload.gpus = (unsigned)number(optarg, "GPUs");
		else if (option == 'l')
			workload.load_percent = (unsigned)number(optarg, "load");
		else if (option == 'p')
			workload.has_shares = true;
		else if (option == 'f')
			is_only_fair = true;
		else if (option == 't')
			is_only_foretold = true;
		else if (option == 'm')
			is_markdown = true;
		else
			return false;
	}
	return optind == argc && workload.jobs && workload.jobs <= JOBS_MOST &&
	       workload.load_percent;
}

int main(int argc, char **argv)
{
	static const unsigned machines[] = { 8, 64, 128 };

	tool_init();
	/* a job of 8 has to find its GPUs */
	if (!take_options(argc, argv) ||
		(workload.gpus && (workload.gpus < 8 || workload.gpus > GPUSET_MAX)))
		return TOOL_MISUSE;
	if (!is_only_fair && !is_only_foretold)
		print_head();
	if (workload.gpus)
		run_orders();
	for (size_t i = 0; !is_only_fair && !is_only_foretold && !workload.gpus &&
			   i < ARRAY_SIZE(machines);
		i++) {
		workload.gpus = machines[i];
		run_orders();
		workload.gpus = 0;
	}
	if (!workload.has_shares && !is_only_foretold)
		run_fair();
	if (!workload.has_shares && !is_only_fair && !workload.gpus)
		run_foretold();
	return is_markdown ? 0 : tap_end();
}
