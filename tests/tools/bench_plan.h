/*
 * How long a plan takes.  Plans the whole queue, as for its last ticket; gpulease itself stops
 * where the plan is closed.
 */
#ifndef GPULEASE_TESTS_BENCH_PLAN_H
#define GPULEASE_TESTS_BENCH_PLAN_H

#include "measure.h"
#include "policy.h"

enum { PLAN_CARD_MIB = 81920, PLAN_NOW_MS = 1000000, PLAN_MINUTE_MS = 60000 };

struct plan_bench {
	struct plan_gpu gpus[GPUSET_MAX];
	struct plan_use uses[GPUSET_MAX][2];
	struct links links;
	struct plan_facts facts;
	struct plan_row *rows;
	size_t count;
};

/* The same numbers in each run. */
static inline unsigned plan_random(unsigned bound)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(state >> 33) % bound;
}

/* Half of the GPUs are free; each of the others has one job alone, or two that share it. */
static inline void plan_bench_gpu(struct plan_bench *bench, unsigned slot, unsigned count)
{
	struct plan_gpu *gpu = &bench->gpus[slot];
	unsigned kind = plan_random(4);
	int64_t end_ms =
		plan_random(5) ? PLAN_NOW_MS + plan_random(600) * PLAN_MINUTE_MS : 0;

	*gpu = (struct plan_gpu){ .exists = true,
		.index = slot,
		.total_mib = PLAN_CARD_MIB,
		.state = kind < 2 ? GPU_FREE : GPU_LEASED,
		.use_count = kind < 2 ? 0 : kind - 1,
		.uses = bench->uses[slot] };
	bench->uses[slot][0] = bench->uses[slot][1] = (struct plan_use){
		.percent = kind == 2 ? (unsigned)WHOLE_PERCENT : 30,
		.mib = kind == 2 ? PLAN_CARD_MIB : PLAN_CARD_MIB / 4,
		.end_ms = end_ms,
	};
	bench->links.node[slot] = (int16_t)(slot / 4 % 2);
	for (unsigned other = 0; other < count; other++)
		bench->links.level[slot][other] = slot / 8 == other / 8     ? LINK_NV + 12
						  : slot / 16 == other / 16 ? LINK_PIX
									    : LINK_SYS;
}

static inline struct plan_row plan_bench_row(size_t i)
{
	static const struct need needs[] = { NEED_WHOLE, NEED_WHOLE, NEED_WHOLE,
		{ .percent = 50 }, { .percent = 25, .mib = 16384 }, { .mib = 20480 } };
	static const uint32_t counts[] = { 1, 1, 1, 1, 2, 2, 4, 8 };

	return (struct plan_row){ .ticket = i + 1,
		.uid = 1000 + plan_random(20),
		.gpus = counts[plan_random(ARRAY_SIZE(counts))],
		.need = needs[plan_random(ARRAY_SIZE(needs))],
		.limit_ms = plan_random(3) ? (1 + plan_random(600)) * INT64_C(60000) : 0,
		.grace_ms = 10000,
		.allow = GPUSET_ALL };
}

static inline void plan_bench_build(struct plan_bench *bench, size_t count, unsigned gpus)
{
	for (unsigned slot = 0; slot < gpus; slot++)
		plan_bench_gpu(bench, slot, gpus);
	bench->facts = (struct plan_facts){ .gpus = bench->gpus,
		.links = &bench->links,
		.now_ms = PLAN_NOW_MS,
		.margin_mib = 512,
		/* read by the plan, never reached */
		.limits = { .user_percent = 100000, .all_leases = 100000 } };
	bench->count = count;
	bench->rows = calloc(count, sizeof(*bench->rows));
	if (!bench->rows)
		die("no memory");
	for (size_t i = 0; i < count; i++)
		bench->rows[i] = plan_bench_row(i);
}

static inline void plan_bench_measure(const char *figure, const char *target,
	size_t count, unsigned gpus, double most_ms, unsigned rounds)
{
	static struct plan plan;
	static struct plan_bench bench;
	struct samples samples = { .count = 0 };
	unsigned starts = 0;

	memset(&bench, 0, sizeof(bench));
	plan_bench_build(&bench, count, gpus);
	for (unsigned round = 0; round <= rounds; round++) {
		int64_t begun = now_ns();

		starts = 0;
		plan_begin(&plan, &bench.facts);
		for (size_t i = 0; i < bench.count; i++)
			starts += plan_next(&plan, &bench.rows[i]).kind == VERDICT_START;
		if (round)
			sample_add(&samples, now_ns() - begun);
	}
	table_row(figure, target, sample_median(&samples), "ms", 0,
		sample_median(&samples) <= most_ms ? VERDICT_MET : VERDICT_MISSED);
	table_detail("the whole queue", &samples);
	(void)printf("    %u start; %zu KiB whatever the queue, and %zu bytes a ticket\n",
		starts, sizeof(plan) / 1024, sizeof(struct plan_row));
	free(bench.rows);
}

static inline void plan_bench_rows(unsigned rounds)
{
	plan_bench_measure("the plan: 1,000 waiting tickets, 64 GPUs", "at most 1 ms",
		1000, 64, 1, rounds);
	plan_bench_measure("the plan: 10,000 waiting tickets, 128 GPUs", "at most 20 ms",
		10000, 128, 20, rounds);
}

#endif
