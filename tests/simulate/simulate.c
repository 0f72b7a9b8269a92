/*
 * simulate: compares the order in which gpulease starts jobs with other orders, on a realistic
 * mix of jobs.
 *
 *	simulate [--jobs N] [--seed N] [--gpus N] [--load PERCENT] [--shares] [--markdown]
 *
 * Prints a table: strictly first in, first out; every job that fits starts (skip-ahead); and the
 * plan of gpulease itself, without and with a default time limit for the fifth of the jobs that
 * have none: while a job without a limit runs, no job can be started before the head.  --gpus:
 * without it 8, 64 and 128.  --shares: half of the jobs declare a share or memory; skip-ahead is
 * left out.  --markdown: only the table.
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
static bool is_markdown;

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

static bool take_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "jobs", required_argument, NULL, 'j' },
		{ "seed", required_argument, NULL, 's' },
		{ "gpus", required_argument, NULL, 'g' },
		{ "load", required_argument, NULL, 'l' },
		{ "shares", no_argument, NULL, 'p' },
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
	print_head();
	if (workload.gpus)
		run_orders();
	for (size_t i = 0; !workload.gpus && i < ARRAY_SIZE(machines); i++) {
		workload.gpus = machines[i];
		run_orders();
		workload.gpus = 0;
	}
	return is_markdown ? 0 : tap_end();
}
