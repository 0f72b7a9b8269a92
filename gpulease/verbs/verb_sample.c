/*
 * --sample ID: one sample of how a job uses its GPUs, for the process that looks after the job
 * (use_watch.h).  All samples of a minute rest on one answer of nvidia-smi.
 *
 * It adds the sample to the file of the job (lease_use.h) and prints that file's record and then
 * what the job is to be told.  It exits with EXIT_GAVE_UP if the job is to be ended.  It measures
 * only jobs of its own user, and what it writes is what nvidia-smi says; so it makes no difference
 * who runs it.
 */
#include <stdio.h>

#include "clock.h"
#include "context.h"
#include "diag.h"
#include "end_record.h"
#include "exitcodes.h"
#include "instance.h"
#include "namespaces.h"
#include "parse.h"
#include "request.h"
#include "state_reader.h"
#include "lease_use.h"
#include "usage.h"
#include "use_watch.h"
#include "use_rule.h"
#include "verbs.h"
#include "view_queue.h"

/*
 * Two samples have a gap between them if they are so much of the interval apart, and as long as
 * nvidia-smi may take.
 */
enum { GAP_PERCENT = 250 };

static struct state_reader reader; /* too big for the stack */

/* --- what nvidia-smi shows ---------------------------------------------------------------- */

/* Returns the utilization of the GPU by the job, or USE_NOT_KNOWN. */
static int gpu_percent(const struct snapshot_lease *held, unsigned slot)
{
	const struct snapshot *view = &reader.snapshot;
	const struct snapshot_gpu *gpu = &view->gpus[slot];
	struct need need = lease_need(&held->lease);

	if (gpu->row < 0 || gpu_is_instance(&gpu->file.gpu) || !need_is_whole(&need) ||
		!view->probe.gpus[gpu->row].is_known)
		return USE_NOT_KNOWN;
	if (reader.prober.config.sim_gpus && !reader.prober.sees_use)
		return USE_NOT_KNOWN;
	return view->probe.gpus[gpu->row].utilization;
}

/*
 * Returns the memory that the job uses on the GPU.  In a container nvidia-smi may list no process:
 * then all of it is the job's, if no other job shares the GPU.
 */
static uint64_t gpu_mib(const struct snapshot_lease *held, unsigned slot)
{
	const struct snapshot *view = &reader.snapshot;
	const struct snapshot_gpu *gpu = &view->gpus[slot];
	struct need need = lease_need(&held->lease);
	const struct probe_gpu *seen;

	if (gpu->row < 0 || gpu_is_instance(&gpu->file.gpu))
		return 0;
	seen = &view->probe.gpus[gpu->row];
	if (!need_is_whole(&need))
		return gpuset_count(&held->lease.gpus) == 1 ? held->seen_mib : 0;
	return seen->is_known && seen->used_mib > usage_idle_mib(&view->usage, seen)
		       ? seen->used_mib
		       : 0;
}

static struct use_sample sample_of(
	const struct snapshot_lease *held, const struct config *config)
{
	struct use_sample sample = {
		.at_ms = reader.snapshot.probe.started_ms,
		.since_ms = held->lease.since_ms,
		.gap_ms = config->idle_interval_ms * GAP_PERCENT / 100 +
			  config->probe_deadline_ms,
		.below_percent = config->idle_below_percent,
	};

	gpuset_for_each (slot, &held->lease.gpus) {
		if (sample.count < USE_GPUS_MAX) {
			sample.percents[sample.count] = gpu_percent(held, (unsigned)slot);
			sample.mibs[sample.count] = gpu_mib(held, (unsigned)slot);
		}
		sample.count++;
	}
	return sample;
}

/* --- the jobs that wait -------------------------------------------------------------------- */

static bool has_common(const struct gpuset *a, const struct gpuset *b)
{
	gpuset_for_each (slot, a)
		if (gpuset_has(b, (unsigned)slot))
			return true;
	return false;
}

/*
 * Whether a job that wants one of the GPUs in @gpus waits for leases to end.  One whose process is
 * stopped would not take a GPU.
 */
static bool are_waited_for(const struct gpuset *gpus)
{
	struct view view = VIEW_NONE;
	bool is_waited_for = false;

	if (view_fill_jobs(&reader, &view) < 0)
		return false;
	for (size_t i = 0, at = 0; i < view.job_count && !is_waited_for; i++) {
		/* the rows are in the same order, and may have a few more */
		while (at < reader.row_count &&
			ticket_job(reader.rows[at].number, &reader.rows[at].ticket) !=
				view.jobs[i].ticket)
			at++;
		is_waited_for = !view.jobs[i].is_stopped &&
				(view.jobs[i].verdict == VERDICT_LEASED ||
					view.jobs[i].verdict == VERDICT_BEHIND) &&
				at < reader.row_count &&
				has_common(&reader.rows[at].ticket.request.allow, gpus);
	}
	view_release(&view);
	return is_waited_for;
}

/* --- the job --------------------------------------------------------------------------------- */

/* Appends what the job is told. */
static void tell(const struct use_case *now, const struct snapshot_lease *held,
	enum use_step step, int64_t end_at_ms, struct text *line)
{
	char unused[DURATION_SIZE], left[DURATION_SIZE], names[64];
	unsigned long long job = lease_job(&held->lease);

	format_duration(now->unused_ms, unused);
	format_duration(max_i64(end_at_ms - now->now_ms, 1000), left);
	end_record_name_gpus(&reader.snapshot, &held->lease.gpus, names, sizeof(names));
	text_addf(line, "job %llu has not used GPU %s for %s", job, names, unused);
	if (step == USE_END)
		text_add(line, ", and other jobs wait: TERM now");
	else if (step != USE_TELL)
		text_addf(line,
			", and other jobs wait: it ends in %s unless it uses the GPU",
			left);
	if (step != USE_END)
		text_addf(line, "; to give it back: gpulease --cancel %llu", job);
}

/* Adds the sample to @use.  Returns what follows for the job, and appends what it is told. */
static enum use_step judge(const struct snapshot_lease *held, const struct config *config,
	struct lease_use *use, struct text *line)
{
	const struct lease *lease = &held->lease;
	struct use_sample sample = sample_of(held, config);
	struct use_case now = {
		.limits = use_limits_of_job(&(struct use_limits){
			.after_ms = config->idle_after_ms,
			.end_ms = config->idle_end_ms,
			.ok_ms = lease->unused_ok_ms,
		}),
		.now_ms = sample.at_ms,
		.before_ms = use->unused_now_ms,
	};
	enum use_step step;
	int64_t end_at_ms = 0;

	lease_use_add(use, &sample);
	now.unused_ms = use->unused_now_ms;
	now.warned_ms = use->warned_ms;
	now.warnings = use->warnings;
	now.is_waited_for =
		now.limits.end_ms && now.unused_ms && are_waited_for(&lease->gpus);
	step = use_rule_judge(&now, &end_at_ms);
	if (step == USE_WARN_FIRST)
		use->warned_ms = now.now_ms;
	if (step == USE_WARN_FIRST || step == USE_WARN_LAST)
		use->warnings++;
	if (!now.is_waited_for)
		use->warned_ms = use->warnings = 0;
	if (step != USE_NOTHING)
		tell(&now, held, step, end_at_ms, line);
	return step;
}

/* Samples one lease, and prints its use and what the job is told.  Returns an exit status. */
static int sample_lease(const struct snapshot_lease *held, const struct config *config)
{
	const char *token = held->lease.owner.token;
	const struct statedir *dir = reader.snapshot.dir;
	char raw[RECORD_SIZE], words[USE_LINE_SIZE];
	struct text line = TEXT_ON(words);
	struct lease_use use;
	enum use_step step;

	lease_use_read(dir, token, &use);
	step = judge(held, config, &use, &line);
	(void)!lease_use_write(dir, token, &use);
	lease_use_encode(&use, raw);
	(void)fwrite(raw, sizeof(raw), 1, stdout);
	(void)fputs(words, stdout);
	return step == USE_END ? EXIT_GAVE_UP : EXIT_DONE;
}

/* Returns the lease of job @job, if it is one of the caller's and the job runs; or NULL. */
static struct snapshot_lease *find_lease(uint64_t job)
{
	struct snapshot *view = &reader.snapshot;

	for (size_t i = 0; i < view->lease_count; i++) {
		struct snapshot_lease *held = &view->leases[i];

		if (lease_job(&held->lease) == job && !held->is_dead &&
			held->is_of_this_boot &&
			(held->lease.owner.uid == namespaces_own_user() || getuid() == 0))
			return held;
	}
	return NULL;
}

/* Reads the state, and samples the job.  Returns an exit status. */
static int sample_job(const struct context *context, uint64_t job)
{
	const struct config *config = &context->config;
	struct snapshot_lease *held;
	struct why why = WHY_NONE;
	/* the first sample of each interval asks nvidia-smi, the others use its answer */
	int r = state_reader_probe(
		&reader, reader.begun_ms - reader.begun_ms % config->idle_interval_ms);

	if (r == 0)
		r = state_reader_read(&reader, &why);
	if (r < 0) {
		diag("%s", why.text[0] ? why.text : strerror(-r));
		return EXIT_MISUSE;
	}
	held = find_lease(job);
	if (!held)
		return EXIT_NOT_DONE;
	return reader.snapshot.has_probe ? sample_lease(held, config) : EXIT_DONE;
}

int verb_sample(struct settings *settings)
{
	static struct context context;
	uint64_t job = 0;
	int r = context_open(settings, &context);

	if (r != 0)
		return r;
	(void)!parse_u64(settings->verb.operands[0], UINT64_MAX, &job, NULL);
	state_reader_init(&reader, &context, VIEW_JOBS_MAX);
	reader.patience_ms = context_patience_ms(&context);
	reader.snapshot.limits = request_limits(&context.config);
	r = sample_job(&context, job);
	/* ends an nvidia-smi that has not answered */
	state_reader_release(&reader);
	return r;
}
