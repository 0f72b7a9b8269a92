#include "estimate.h"
#include "machine.h"
#include "../tools/tool.h"

enum { MARGIN_MIB = 512, BOX = 8, SLOWDOWN_MS = 60000, MINUTE_MS = 60000 };

/* With more jobs ahead nothing is foretold, as in broker_foretell(). */
enum { FORETELL_AHEAD = 15 };

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
	bool is_fair, foretells;
	struct usual usual[KINDS + 1]; /* of each kind */
	unsigned overfull;
};

const struct config_share machine_share = { .rate_ms = 15 * 60000,
	.window_ms = 7 * DEFAULT_LIMIT_MS,
	.most_ms = DEFAULT_LIMIT_MS };

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

/* Keeps the lengths of the last runs of each kind, as usual_note() finds them in the history. */
static void note_run(struct machine *machine, const struct job *job)
{
	struct usual *usual = &machine->usual[job->kind];
	unsigned at;

	if (job->fails)
		return;
	/* the oldest is not known here: a random one goes, which is the same on average */
	if (usual->runs == USUAL_RUNS) {
		at = (unsigned)(job->run_ms % USUAL_RUNS);
		memmove(&usual->ran_ms[at], &usual->ran_ms[at + 1],
			(USUAL_RUNS - 1 - at) * sizeof(*usual->ran_ms));
		usual->runs--;
	}
	at = usual->runs++;
	for (; at > 0 && usual->ran_ms[at - 1] > job->run_ms; at--)
		usual->ran_ms[at] = usual->ran_ms[at - 1];
	usual->ran_ms[at] = job->run_ms;
}

static void end(struct machine *machine, size_t i)
{
	note_run(machine, &machine->jobs[i]);
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

/* --- fair-share ------------------------------------------------------------------------- */

/* What the job had of the days that count: for whole days, as in the file. */
static uint64_t had_gpu_ms(const struct machine *machine, const struct job *job)
{
	int64_t now_ms = machine->facts.now_ms;
	int64_t first_ms = (now_ms / DEFAULT_LIMIT_MS - 6) * DEFAULT_LIMIT_MS;
	int64_t end_ms = min_i64(job->start_ms + job->run_ms, now_ms);

	return job->start_ms < 0
		       ? 0
		       : (uint64_t)max_i64(0, end_ms - max_i64(job->start_ms, first_ms)) *
				 job->gpus;
}

/* By how much job @i counts as later: for what its user had, and for what waits already. */
static int64_t late_of(const struct machine *machine, size_t i)
{
	uint64_t gpu_ms = 0;

	for (size_t k = 0; k < i; k++)
		if (machine->jobs[k].uid == machine->jobs[i].uid)
			gpu_ms += had_gpu_ms(machine, &machine->jobs[k]);
	for (size_t at = 0; at < machine->queued; at++) {
		const struct job *job = &machine->jobs[machine->queue[at]];

		if (job->uid == machine->jobs[i].uid && machine->queue[at] != i)
			gpu_ms += (uint64_t)limit_of(machine, job) * job->gpus;
	}
	return config_share_late_ms(&machine_share, gpu_ms);
}

static int64_t place_of(const struct machine *machine, size_t i)
{
	return machine->jobs[i].arrival_ms + machine->jobs[i].late_ms;
}

/* Moves the last job of the queue, which has just come, to its place. */
static void take_place(struct machine *machine)
{
	size_t i = machine->queue[machine->queued - 1], at = machine->queued - 1;

	machine->jobs[i].is_late = true;
	machine->jobs[i].late_ms = late_of(machine, i);
	for (; at > 0 && place_of(machine, machine->queue[at - 1]) > place_of(machine, i);
		at--)
		machine->queue[at] = machine->queue[at - 1];
	machine->queue[at] = i;
}

/* A job has come, first in the order of arrival; if it has to wait it takes its place. */
static void come_fairly(struct machine *machine, size_t i)
{
	size_t at = machine->queued;

	/* those that count as later stand behind it at first */
	for (; at > 0 && place_of(machine, machine->queue[at - 1]) > place_of(machine, i);
		at--)
		machine->queue[at] = machine->queue[at - 1];
	machine->queue[at] = i;
	machine->queued++;
	start_all(machine, ORDER_PLAN);
	if (machine->jobs[i].start_ms >= 0)
		return;
	for (at = 0; machine->queue[at] != i; at++)
		;
	memmove(&machine->queue[at], &machine->queue[at + 1],
		(machine->queued - at - 1) * sizeof(*machine->queue));
	machine->queue[machine->queued - 1] = i;
	take_place(machine);
}

/* --- the usual start -------------------------------------------------------------------- */

/*
 * Estimates when the last job of the queue starts if @percent of the jobs end in time; 0: unknown.
 */
static int64_t usual_start_ms(const struct machine *machine, unsigned percent)
{
	static struct plan_use uses[GPUSET_MAX][ROOM_LEASES];
	struct plan_gpu gpus[GPUSET_MAX];
	struct plan_facts facts = machine->facts;
	struct plan_row rows[FORETELL_AHEAD + 1];
	int64_t starts_ms[FORETELL_AHEAD + 1], run_ms;

	memcpy(gpus, machine->gpus, sizeof(gpus));
	memcpy(uses, machine->uses, sizeof(uses));
	facts.gpus = gpus;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++) {
		gpus[slot].uses = uses[slot];
		for (unsigned i = 0; i < gpus[slot].use_count; i++) {
			const struct job *job = &machine->jobs[machine->owners[slot][i]];
			int64_t *end_ms = &uses[slot][i].end_ms;

			run_ms = usual_run_ms(&machine->usual[job->kind], percent,
				facts.now_ms - job->start_ms);
			if (run_ms && (!*end_ms || job->start_ms + run_ms < *end_ms))
				*end_ms = job->start_ms + run_ms;
		}
	}
	for (size_t i = 0; i < machine->queued; i++) {
		const struct job *job = &machine->jobs[machine->queue[i]];

		rows[i] = row_of(machine, machine->queue[i]);
		run_ms = usual_run_ms(&machine->usual[job->kind], percent, 0);
		if (run_ms && (!rows[i].limit_ms || run_ms < rows[i].limit_ms))
			rows[i].limit_ms = run_ms, rows[i].grace_ms = 0;
	}
	if (estimate_starts(&facts, rows, machine->queued, starts_ms) < 0)
		die("no memory");
	return starts_ms[machine->queued - 1];
}

/* Job @i has come and has to wait, the last of the queue. */
static void tell_start(struct machine *machine, size_t i)
{
	struct job *job = &machine->jobs[i];
	int64_t early_ms, late_ms;

	if (machine->queued > FORETELL_AHEAD + 1)
		return;
	early_ms = usual_start_ms(machine, 10);
	late_ms = usual_start_ms(machine, 90);
	if (early_ms <= machine->facts.now_ms || late_ms <= machine->facts.now_ms)
		return;
	job->from_ms = min_i64(early_ms, late_ms);
	job->to_ms = max_i64(early_ms, late_ms);
}

struct foretold_count machine_count_foretold(const struct job *jobs, size_t count)
{
	struct foretold_count ret = { .in = 0 };

	for (size_t i = 0; i < count; i++) {
		if (!jobs[i].to_ms)
			continue;
		/* people are told minutes */
		ret.before += jobs[i].start_ms < jobs[i].from_ms - MINUTE_MS;
		ret.after += jobs[i].start_ms > jobs[i].to_ms + MINUTE_MS;
		ret.in += jobs[i].start_ms >= jobs[i].from_ms - MINUTE_MS &&
			  jobs[i].start_ms <= jobs[i].to_ms + MINUTE_MS;
	}
	return ret;
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
	size_t come = 0, told = 0;

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
			come++) {
			if (machine->is_fair)
				come_fairly(machine, come);
			else
				machine->queue[machine->queued++] = come;
		}
		start_all(machine, order);
		if (machine->foretells && machine->queued && told < come &&
			machine->queue[machine->queued - 1] == come - 1)
			tell_start(machine, come - 1);
		told = come;
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
	machine->default_limit_ms =
		order == ORDER_PLAN || order == ORDER_FAIR ? DEFAULT_LIMIT_MS : 0;
	machine->foretells = order == ORDER_FORETOLD;
	machine->is_fair = order == ORDER_FAIR;
	run_all(machine, workload->jobs, order);
	outcome = sum_up(workload, jobs);
	outcome.overfull = machine->overfull;
	return outcome;
}

struct waits machine_waits(const struct job *jobs, size_t count, bool is_flooder)
{
	autofree int64_t *waits = calloc(count, sizeof(*waits));
	struct waits ret = { .mean_s = 0 };
	size_t found = 0;

	if (!waits)
		die("no memory");
	for (size_t i = 0; i < count; i++) {
		const struct job *job = &jobs[i];
		int64_t waited_ms = job->start_ms - BOOT_MS - job->arrival_ms;

		if (job->start_ms < 0 || (job->uid == FLOODER) != is_flooder)
			continue;
		waits[found++] = waited_ms;
		ret.mean_s += (double)waited_ms / 1000;
	}
	if (!found)
		return ret;
	qsort(waits, found, sizeof(*waits), compare_waits);
	ret.mean_s /= (double)found;
	ret.median_s = (double)waits[found / 2] / 1000;
	ret.longest_s = (double)waits[found - 1] / 1000;
	return ret;
}
