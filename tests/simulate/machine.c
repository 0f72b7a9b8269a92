#include "machine.h"
#include "../tools/tool.h"

enum { MARGIN_MIB = 512, BOX = 8, SLOWDOWN_MS = 60000 };

/* CLOCK_BOOTTIME at the beginning; 0 would mean unknown. */
#define BOOT_MS INT64_C(1000)

struct machine {
	struct plan_gpu gpus[GPUSET_MAX];
	struct plan_use uses[GPUSET_MAX][ROOM_LEASES];
	size_t owners[GPUSET_MAX][ROOM_LEASES]; /* the jobs of the uses */
	struct links links;
	struct plan_facts facts;
	struct job *jobs;
	size_t *queue, queued, *running, run;
	int64_t default_limit_ms;
	unsigned overfull;
};

/* --- jobs come and go ----------------------------------------------------------------- */

static void build(struct machine *machine, const struct workload *workload)
{
	for (unsigned slot = 0; slot < workload->gpus; slot++) {
		machine->gpus[slot] = (struct plan_gpu){ .exists = true,
			.index = slot,
			.total_mib = CARD_MIB,
			.uses = machine->uses[slot] };
		machine->links.node[slot] = (int16_t)(slot / BOX);
		for (unsigned other = 0; other < workload->gpus; other++)
			machine->links.level[slot][other] =
				slot / BOX == other / BOX ? LINK_NV + 12 : LINK_SYS;
	}
	machine->facts = (struct plan_facts){
		.gpus = machine->gpus, .links = &machine->links, .margin_mib = MARGIN_MIB
	};
}

static int64_t limit_of(const struct machine *machine, const struct job *job)
{
	return job->limit_ms ? job->limit_ms : machine->default_limit_ms;
}

static void start(struct machine *machine, size_t i, const struct gpuset *on)
{
	struct job *job = &machine->jobs[i];
	int64_t limit_ms = limit_of(machine, job);
	int64_t end_ms = limit_ms ? machine->facts.now_ms + limit_ms + GRACE_MS : 0;

	job->start_ms = machine->facts.now_ms;
	job->on = *on;
	machine->running[machine->run++] = i;
	gpuset_for_each (slot, on) {
		struct plan_gpu *gpu = &machine->gpus[slot];

		if (gpu->use_count == ROOM_LEASES)
			die("too many leases on GPU %d", slot);
		machine->owners[slot][gpu->use_count] = i;
		machine->uses[slot][gpu->use_count++] =
			(struct plan_use){ .percent = job->need.percent,
				.mib = need_mib(&job->need, CARD_MIB),
				.end_ms = end_ms };
		gpu->state = GPU_LEASED;
	}
}

static void end(struct machine *machine, size_t i)
{
	gpuset_for_each (slot, &machine->jobs[i].on) {
		struct plan_gpu *gpu = &machine->gpus[slot];
		unsigned at = 0;

		while (machine->owners[slot][at] != i)
			at++;
		gpu->use_count--;
		machine->owners[slot][at] = machine->owners[slot][gpu->use_count];
		machine->uses[slot][at] = machine->uses[slot][gpu->use_count];
		if (!gpu->use_count)
			gpu->state = GPU_FREE;
	}
}

/* Checks the sums that every order must keep. */
static void check(struct machine *machine)
{
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++) {
		unsigned percent = 0, alone = 0, count = machine->gpus[slot].use_count;
		uint64_t mib = 0;

		for (unsigned i = 0; i < count; i++) {
			percent += machine->uses[slot][i].percent;
			mib += machine->uses[slot][i].mib;
			alone += machine->uses[slot][i].percent == WHOLE_PERCENT;
		}
		machine->overfull +=
			percent > WHOLE_PERCENT || mib > CARD_MIB || (alone && count > 1);
	}
}

/* --- the orders ------------------------------------------------------------------------ */

static struct plan_row row_of(const struct machine *machine, size_t i)
{
	const struct job *job = &machine->jobs[i];

	return (struct plan_row){ .ticket = i + 1,
		.uid = job->uid,
		.gpus = job->gpus,
		.need = job->need,
		.limit_ms = limit_of(machine, job),
		.grace_ms = GRACE_MS,
		.allow = GPUSET_ALL };
}

/*
 * Starts jobs by the plan; if @is_strict, only up to the first that cannot start.  Returns how
 * many.
 */
static size_t start_planned(struct machine *machine, bool is_strict)
{
	static struct plan plan;
	size_t kept = 0, at = 0, started = 0, before = machine->run;
	struct gpuset on[GPUSET_MAX * ROOM_LEASES];

	plan_begin(&plan, &machine->facts);
	for (; at < machine->queued && !plan_is_closed(&plan); at++) {
		struct plan_row row = row_of(machine, machine->queue[at]);
		struct verdict verdict = plan_next(&plan, &row);

		if (verdict.kind == VERDICT_START) {
			on[started] = verdict.gpus;
			machine->running[before + started++] = machine->queue[at];
			continue;
		}
		if (is_strict)
			break;
		machine->queue[kept++] = machine->queue[at];
	}
	memmove(&machine->queue[kept], &machine->queue[at],
		(machine->queued - at) * sizeof(*machine->queue));
	machine->queued -= started;
	/* only now, as the plan refers to the facts as they were */
	for (size_t i = 0; i < started; i++)
		start(machine, machine->running[before + i], &on[i]);
	return started;
}

static void start_fitting(struct machine *machine)
{
	size_t kept = 0;
	struct gpuset on = GPUSET_NONE, free = GPUSET_NONE;

	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		if (machine->gpus[slot].exists && !machine->gpus[slot].use_count)
			gpuset_add(&free, slot);
	for (size_t at = 0; at < machine->queued; at++) {
		size_t i = machine->queue[at];
		unsigned left = machine->jobs[i].gpus;

		if (gpuset_count(&free) < left) {
			machine->queue[kept++] = i;
			continue;
		}
		on = GPUSET_NONE;
		for (; left > 0; left--) {
			unsigned slot = (unsigned)gpuset_next(&free, 0);

			gpuset_add(&on, slot);
			gpuset_remove(&free, slot);
		}
		start(machine, i, &on);
	}
	machine->queued = kept;
}

static void start_all(struct machine *machine, enum order order)
{
	if (order == ORDER_SKIP) {
		start_fitting(machine);
	} else {
		/* the next plan knows the ends of the jobs that have started */
		while (start_planned(machine, order == ORDER_FIFO) > 0)
			;
	}
}

/* --- time ------------------------------------------------------------------------------ */

static int64_t end_of(const struct machine *machine, size_t i)
{
	return machine->jobs[i].start_ms + machine->jobs[i].run_ms;
}

/* Ends all jobs whose end has come. */
static void end_due(struct machine *machine)
{
	size_t kept = 0;

	for (size_t at = 0; at < machine->run; at++) {
		size_t i = machine->running[at];

		if (end_of(machine, i) <= machine->facts.now_ms)
			end(machine, i);
		else
			machine->running[kept++] = i;
	}
	machine->run = kept;
}

/* When the next job ends; INT64_MAX: no job runs. */
static int64_t next_end(const struct machine *machine)
{
	int64_t next_ms = INT64_MAX;

	for (size_t at = 0; at < machine->run; at++)
		next_ms = min_i64(next_ms, end_of(machine, machine->running[at]));
	return next_ms;
}

static void run_all(struct machine *machine, size_t count, enum order order)
{
	size_t come = 0;

	for (;;) {
		int64_t next_ms = next_end(machine);

		if (come < count)
			next_ms = min_i64(
				next_ms, BOOT_MS + machine->jobs[come].arrival_ms);
		if (next_ms == INT64_MAX)
			return;
		machine->facts.now_ms = next_ms;
		end_due(machine);
		for (; come < count &&
			BOOT_MS + machine->jobs[come].arrival_ms <= next_ms;
			come++)
			machine->queue[machine->queued++] = come;
		start_all(machine, order);
		check(machine);
	}
}

/* --- the outcome ------------------------------------------------------------------------- */

static int compare_waits(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* For how long the span from @start_ms to @end_ms lies before @last_ms. */
static double overlap_ms(int64_t start_ms, int64_t end_ms, int64_t last_ms)
{
	return (double)max_i64(0, min_i64(end_ms, last_ms) - start_ms);
}

static struct outcome sum_up(const struct workload *workload, const struct job *jobs)
{
	struct outcome outcome = { .utilization = 0 };
	autofree int64_t *waits = calloc(workload->jobs, sizeof(*waits));
	int64_t last_ms = BOOT_MS + jobs[workload->jobs - 1].arrival_ms;
	double busy_ms = 0, wait_ms = 0;
	size_t count = 0;

	if (!waits)
		die("no memory");
	for (size_t i = 0; i < workload->jobs; i++) {
		const struct job *job = &jobs[i];
		int64_t run_ms = max_i64(job->run_ms, SLOWDOWN_MS), waited_ms;
		double slowdown;

		if (job->start_ms < 0) {
			outcome.stranded++;
			continue;
		}
		waited_ms = job->start_ms - BOOT_MS - job->arrival_ms;
		slowdown = (double)(waited_ms + run_ms) / (double)run_ms;
		waits[count++] = waited_ms;
		wait_ms += (double)waited_ms;
		if (slowdown > outcome.worst_slowdown)
			outcome.worst_slowdown = slowdown;
		busy_ms +=
			job_weight(job) *
			overlap_ms(job->start_ms, job->start_ms + job->run_ms, last_ms);
	}
	qsort(waits, count, sizeof(*waits), compare_waits);
	outcome.utilization = busy_ms / (double)(last_ms - BOOT_MS) / workload->gpus;
	if (count) {
		outcome.mean_wait_s = wait_ms / (double)count / 1000;
		outcome.p99_wait_s = (double)waits[(count - 1) * 99 / 100] / 1000;
		outcome.longest_wait_s = (double)waits[count - 1] / 1000;
	}
	return outcome;
}

struct outcome machine_run(
	const struct workload *workload, struct job *jobs, enum order order)
{
	autofree struct machine *machine = calloc(1, sizeof(*machine));
	/* a job is appended to the running ones before it is started */
	autofree size_t *queue = calloc(workload->jobs, sizeof(*queue));
	autofree size_t *running = calloc(workload->jobs, sizeof(*running));
	struct outcome outcome;

	if (!machine || !queue || !running)
		die("no memory");
	build(machine, workload);
	machine->jobs = jobs;
	machine->queue = queue;
	machine->running = running;
	machine->default_limit_ms = order == ORDER_PLAN ? DEFAULT_LIMIT_MS : 0;
	run_all(machine, workload->jobs, order);
	outcome = sum_up(workload, jobs);
	outcome.overfull = machine->overfull;
	return outcome;
}
