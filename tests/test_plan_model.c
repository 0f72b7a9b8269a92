/*
 * The plan against a slow and obvious model of it, which shares no code with policy.c, in random
 * histories of a machine: jobs come, wait, run and end.
 *
 * In each plan the model checks all starts and reservations.  In histories in which each job runs
 * to its limit no later job may move the time that the model has worked out for a head, and the
 * first head has to start at its time.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "draw.h"
#include "policy.h"

enum { HISTORIES = 1500, SLOTS = 6, JOBS = 24, LOADS = 8, CARD_MIB = 80000 };

#define NEVER INT64_MAX

struct job {
	unsigned gpus, percent;
	unsigned allow; /* bit n: GPU n */
	int64_t arrives_ms, limit_ms, lasts_ms;
	int64_t started_ms; /* 0: it waits */
	/* by the latest plan, if that made it a head: when it starts at the latest */
	int64_t bound_ms;
	uint64_t ahead; /* and what the plan said of all jobs before it */
	int64_t due_ms; /* since it was the first head; 0: it was not */
	unsigned on;
};

static struct history {
	uint64_t seed;
	int64_t now_ms;
	bool is_exact; /* each job ends at its limit, or never */
	unsigned paused;
	struct job jobs[JOBS];
	/* of the latest plan */
	struct plan plan;
	struct verdict verdicts[JOBS];
	size_t rows[JOBS], row_count; /* the jobs that waited */
} h;

static uint64_t random_state;

static unsigned below(unsigned bound)
{
	return draw(&random_state, bound);
}

#define CHECK(holds, ...)                                      \
	do {                                                   \
		if (!(holds)) {                                \
			print_history();                       \
			print_message(__VA_ARGS__);            \
			fail_msg(": !(%s), seed %llx", #holds, \
				(unsigned long long)h.seed);   \
		}                                              \
	} while (0)

static void print_history(void)
{
	for (size_t i = 0; i < JOBS && h.jobs[i].arrives_ms <= h.now_ms; i++) {
		const struct job *job = &h.jobs[i];

		print_message("job %zu: %u x %u %% of %x, limit %d, started %d on %x\n",
			i, job->gpus, job->percent, job->allow, (int)job->limit_ms,
			(int)job->started_ms, job->on);
	}
	for (size_t i = 0; i < h.row_count; i++)
		print_message("waits: job %zu, verdict %d on %x\n", h.rows[i],
			(int)h.verdicts[i].kind, (unsigned)h.verdicts[i].gpus.bits[0]);
	print_message("now %d, paused %x: ", (int)h.now_ms, h.paused);
}

/* --- the model ------------------------------------------------------------------------ */

/* When the job is certain to have ended. */
static int64_t latest_end(const struct job *job)
{
	return job->limit_ms ? job->started_ms + job->limit_ms : NEVER;
}

static bool is_running(const struct job *job)
{
	return job->started_ms && job->started_ms + job->lasts_ms > h.now_ms;
}

/*
 * The percentage of a GPU in use at @at_ms by jobs that run before this plan, and by those of its
 * first @rows rows that start, if each runs to its limit.
 */
static unsigned used(int slot, int64_t at_ms, size_t rows)
{
	unsigned percent = 0;

	for (size_t i = 0; i < JOBS; i++) {
		const struct job *job = &h.jobs[i];

		if (is_running(job) && job->on >> slot & 1 && latest_end(job) > at_ms)
			percent += job->percent;
	}
	for (size_t i = 0; i < rows; i++) {
		struct job job = h.jobs[h.rows[i]];

		job.started_ms = h.now_ms;
		if (gpuset_has(&h.verdicts[i].gpus, (unsigned)slot) &&
			latest_end(&job) > at_ms)
			percent += job.percent;
	}
	return percent;
}

/* The earliest moment at which @job has room on the GPU; NEVER: none is certain. */
static int64_t earliest(const struct job *job, int slot, size_t rows)
{
	int64_t first_ms = NEVER;

	if (used(slot, h.now_ms, rows) + job->percent <= WHOLE_PERCENT)
		return h.now_ms;
	for (size_t i = 0; i < JOBS; i++) {
		struct job other = h.jobs[i];

		if (!other.started_ms)
			other.started_ms = h.now_ms;
		if (latest_end(&other) > h.now_ms && latest_end(&other) < first_ms &&
			used(slot, latest_end(&other), rows) + job->percent <=
				WHOLE_PERCENT)
			first_ms = latest_end(&other);
	}
	return first_ms;
}

struct reservation {
	const struct job *job;
	size_t row;
	unsigned slots;
	int64_t bound_ms;
};

/* The GPUs of @from soonest to have room, then the lowest. */
static struct reservation reserve(size_t row, unsigned from)
{
	struct reservation out = {
		.job = &h.jobs[h.rows[row]], .row = row, .bound_ms = h.now_ms
	};

	for (unsigned i = 0; i < out.job->gpus; i++) {
		int best = -1;

		for (int slot = 0; slot < SLOTS; slot++)
			if (from >> slot & 1 &&
				(best < 0 || earliest(out.job, slot, row) <
						     earliest(out.job, best, row)))
				best = slot;
		from &= ~(1u << best);
		out.slots |= 1u << best;
		out.bound_ms = max_i64(out.bound_ms, earliest(out.job, best, row));
	}
	return out;
}

static unsigned count_bits(unsigned bits)
{
	return (unsigned)__builtin_popcount(bits);
}

/*
 * After all starts of the plan: the head still has its room at its time, whatever else started.  If
 * it has no such time, the room that it waits for on one GPU is not given away either.
 */
static void check_kept(const struct reservation *head)
{
	for (int slot = 0; slot < SLOTS; slot++) {
		int64_t at_ms = head->bound_ms;

		if (!(head->slots >> slot & 1))
			continue;
		if (at_ms == NEVER)
			at_ms = earliest(head->job, slot, head->row);
		if (at_ms != NEVER)
			CHECK(used(slot, at_ms, h.row_count) + head->job->percent <=
					WHOLE_PERCENT,
				"row %zu, GPU %d at %d", head->row, slot, (int)at_ms);
		else
			CHECK(used(slot, h.now_ms, h.row_count) ==
					used(slot, h.now_ms, head->row),
				"row %zu, GPU %d", head->row, slot);
	}
}

/* What the plan says of the rows before @row, in one number. */
static uint64_t sum_up(size_t row)
{
	uint64_t sum = 1;

	for (size_t i = 0; i < row; i++) {
		unsigned slots = (unsigned)h.verdicts[i].gpus.bits[0];

		for (unsigned k = 0; k < h.plan.head_count; k++)
			if (h.plan.heads[k].ticket == h.rows[i] + 1)
				slots = (unsigned)h.plan.heads[k].reserved.bits[0];
		sum = (sum ^ h.rows[i]) * UINT64_C(0x9e3779b97f4a7c15);
		sum = (sum ^ h.verdicts[i].kind ^ slots << 4) *
		      UINT64_C(0x9e3779b97f4a7c15);
	}
	return sum;
}

/*
 * From one plan to the next only an earlier job makes a head start later: one that starts, or that
 * reserves other GPUs.  The first head starts at its time.
 */
static void check_time(struct job *job, size_t row, int64_t bound_ms)
{
	uint64_t ahead = sum_up(row);

	if (h.is_exact && job->bound_ms && ahead == job->ahead)
		CHECK(bound_ms <= job->bound_ms, "row %zu: %d instead of %d", row,
			(int)bound_ms, (int)job->bound_ms);
	job->ahead = ahead;
	job->bound_ms = bound_ms;
	if (h.is_exact && h.verdicts[row].is_first) {
		CHECK(!job->due_ms || bound_ms <= job->due_ms, "row %zu", row);
		job->due_ms = bound_ms;
	}
}

/* A job that waits: whether it should, and what it has to be told. */
static void check_waits(
	size_t row, unsigned *reserved, struct reservation *heads, unsigned *count)
{
	struct job *job = &h.jobs[h.rows[row]];
	const struct verdict *verdict = &h.verdicts[row];
	unsigned usable = job->allow & ~h.paused, left = usable & ~*reserved, free = 0;

	for (int slot = 0; slot < SLOTS; slot++)
		if (left >> slot & 1 &&
			used(slot, h.now_ms, row) + job->percent <= WHOLE_PERCENT)
			free++;
	CHECK(free < job->gpus, "row %zu could start", row);
	if (count_bits(usable) < job->gpus) {
		CHECK(verdict->kind == VERDICT_GPU, "row %zu", row);
		return;
	}
	if (count_bits(left) < job->gpus) {
		CHECK(verdict->kind == VERDICT_BEHIND, "row %zu", row);
		return;
	}
	CHECK(verdict->kind == VERDICT_LEASED, "row %zu", row);
	heads[*count] = reserve(row, left);
	*reserved |= heads[*count].slots;
	CHECK(*count < h.plan.head_count &&
			h.plan.heads[*count].reserved.bits[0] == heads[*count].slots,
		"row %zu reserves %x", row, heads[*count].slots);
	CHECK(h.plan.heads[*count].start_ms ==
			(heads[*count].bound_ms == NEVER ? 0 : heads[*count].bound_ms),
		"row %zu at %d", row, (int)heads[*count].bound_ms);
	check_time(job, row, heads[*count].bound_ms);
	(*count)++;
}

static void check_plan(void)
{
	struct reservation heads[JOBS];
	unsigned count = 0, reserved = 0;
	bool is_any_blocked = false;

	for (size_t i = 0; i < h.row_count; i++) {
		const struct job *job = &h.jobs[h.rows[i]];

		if (h.verdicts[i].kind == VERDICT_START) {
			unsigned on = (unsigned)h.verdicts[i].gpus.bits[0];

			CHECK(!(on & ~job->allow) && !(on & h.paused) &&
					count_bits(on) == job->gpus,
				"row %zu", i);
			for (int slot = 0; slot < SLOTS; slot++)
				CHECK(!(on >> slot & 1) || used(slot, h.now_ms, i + 1) <=
								   WHOLE_PERCENT,
					"row %zu, GPU %d", i, slot);
			continue;
		}
		check_waits(i, &reserved, heads, &count);
		/* the first that leases keep waiting always is a head */
		if (!is_any_blocked && h.verdicts[i].kind != VERDICT_GPU) {
			CHECK(h.verdicts[i].is_first, "row %zu", i);
			is_any_blocked = true;
		}
	}
	CHECK(count == h.plan.head_count, "heads");
	for (unsigned i = 0; i < count; i++)
		check_kept(&heads[i]);
}

/* --- histories ------------------------------------------------------------------------ */

static void draw_history(unsigned number)
{
	static const unsigned percents[] = { 100, 100, 100, 50, 30 };
	int64_t at_ms = 1000;

	memset(&h, 0, sizeof(h));
	h.seed = random_state = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
	h.is_exact = number % 3 != 0;
	h.paused = below(3) ? 0 : 1u << below(SLOTS);
	for (size_t i = 0; i < JOBS; i++) {
		struct job *job = &h.jobs[i];

		job->gpus = below(3) ? 1 : 1 + below(4);
		job->percent = percents[below(ARRAY_SIZE(percents))];
		job->allow = (1u << SLOTS) - 1;
		if (below(2))
			job->allow = 1 + below(job->allow);
		job->limit_ms = below(12) ? 10000 + below(900000) : 0;
		job->lasts_ms = job->limit_ms ? job->limit_ms : NEVER / 2;
		if (!h.is_exact)
			job->lasts_ms = 1 + below(job->limit_ms ? (unsigned)job->limit_ms
								: 900000);
		at_ms += below(60000);
		job->arrives_ms = at_ms;
	}
}

static void make_plan(void)
{
	static struct plan_gpu gpus[GPUSET_MAX];
	static struct plan_use uses[SLOTS][LOADS];
	struct plan_facts facts = { .gpus = gpus, .now_ms = h.now_ms, .margin_mib = 512 };

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		gpus[slot] = (struct plan_gpu){ .exists = true,
			.index = slot,
			.total_mib = CARD_MIB,
			.uses = uses[slot],
			.state = h.paused >> slot & 1 ? GPU_PAUSED : GPU_FREE };
		for (size_t i = 0; i < JOBS; i++) {
			const struct job *job = &h.jobs[i];

			if (!is_running(job) || !(job->on >> slot & 1))
				continue;
			if (gpus[slot].state == GPU_FREE)
				gpus[slot].state = GPU_LEASED;
			uses[slot][gpus[slot].use_count++] =
				(struct plan_use){ .percent = job->percent,
					.mib = CARD_MIB / 100 * job->percent,
					.end_ms = job->limit_ms ? latest_end(job) : 0 };
		}
	}
	plan_begin(&h.plan, &facts);
	h.row_count = 0;
	for (size_t i = 0; i < JOBS && h.jobs[i].arrives_ms <= h.now_ms; i++) {
		const struct job *job = &h.jobs[i];
		struct plan_row row = { .ticket = i + 1,
			.gpus = job->gpus,
			.need = { .percent = job->percent },
			.limit_ms = job->limit_ms,
			.allow = { { job->allow } } };

		if (job->started_ms)
			continue;
		h.rows[h.row_count] = i;
		h.verdicts[h.row_count++] = plan_next(&h.plan, &row);
	}
	h.plan.facts = NULL;
}

static void start_planned(void)
{
	for (size_t i = 0; i < h.row_count; i++) {
		struct job *job = &h.jobs[h.rows[i]];

		if (h.verdicts[i].kind == VERDICT_START) {
			job->started_ms = h.now_ms;
			job->on = (unsigned)h.verdicts[i].gpus.bits[0];
		}
		CHECK(!job->due_ms || job->started_ms || h.now_ms < job->due_ms,
			"job %zu was to have started by %d", h.rows[i], (int)job->due_ms);
		if (h.verdicts[i].kind != VERDICT_LEASED)
			job->bound_ms = 0;
	}
}

/* When the next job comes or ends; NEVER: the history is over. */
static int64_t next_event(void)
{
	int64_t next_ms = NEVER;

	for (size_t i = 0; i < JOBS; i++) {
		const struct job *job = &h.jobs[i];

		if (job->arrives_ms > h.now_ms)
			next_ms = min_i64(next_ms, job->arrives_ms);
		else if (is_running(job) && job->lasts_ms < NEVER / 2)
			next_ms = min_i64(next_ms, job->started_ms + job->lasts_ms);
	}
	return next_ms;
}

static void every_plan_keeps_to_the_model(void **state)
{
	unsigned later_heads = 0;

	(void)state;
	for (unsigned number = 0; number < HISTORIES; number++) {
		draw_history(number);
		for (h.now_ms = 1; h.now_ms != NEVER; h.now_ms = next_event()) {
			make_plan();
			check_plan();
			start_planned();
			later_heads += h.plan.head_count > 1;
		}
	}
	/* otherwise little was checked */
	assert_in_range(later_heads, HISTORIES, HISTORIES * JOBS * 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plan_keeps_to_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
