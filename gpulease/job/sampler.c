#include "clock.h"
#include "instance.h"
#include "sampler.h"
#include "usage.h"
#include "use_verdict.h"

enum {
	FRESH_MS =
		2500,  /* a probe that began so long before the moment counts, at most */
	LOOK_MS = 250, /* between looks for the result of another job */
	/* for that result, before the moment is skipped; the prober asks by itself only later */
	PATIENCE_MS = 1750,
	SKIPS_MAX = 60,  /* moments to skip if nothing is shown, at most */
	GROWTH_MIB = 64, /* a peak that has grown so much is written to the lease, … */
	GROWTH_PERCENT = 5, /* … or one that has grown by such a part */
};

/* --- when -------------------------------------------------------------------------- */

/*
 * Returns the first moment after @at_ms: a multiple of the interval, at which all jobs look, or one
 * of the moments soon after the start of this job.
 */
static int64_t sampler_next_moment_ms(const struct sampler *sampler, int64_t at_ms)
{
	static const int64_t early_ms[] = { 500, 1000, 2000, 5000 };
	int64_t next_ms = (at_ms / sampler->interval_ms + 1) * sampler->interval_ms;

	for (size_t i = 0; i < ARRAY_SIZE(early_ms); i++)
		if (sampler->begun_ms + early_ms[i] > at_ms)
			return min_i64(next_ms, sampler->begun_ms + early_ms[i]);
	return next_ms;
}

/*
 * Returns when a probe must have begun to serve for the due moment.  Soon after the start of the
 * job it must be younger, because the memory in use grows fast then.
 */
static int64_t sampler_fresh_from_ms(const struct sampler *sampler)
{
	int64_t most_ms = min_i64(FRESH_MS, sampler->interval_ms / 2);

	return sampler->due_ms -
	       min_i64(most_ms, (sampler->due_ms - sampler->begun_ms) / 4);
}

void sampler_begin(struct sampler *sampler, struct broker *broker, const char *token,
	const struct gpuset *gpus, uint64_t declared_mib, const struct config *settings)
{
	const struct prober_config *config = &broker->prober.config;
	struct need need = request_need(&broker->ticket.request);
	int64_t now_ms = clock_boot_ms();

	*sampler = (struct sampler){
		.broker = broker,
		.is_simulated = config->sim_gpus != 0,
		.interval_ms = config->sim_gpus ? (int64_t)SAMPLE_SIMULATED_MS
						: settings->sample_interval_ms,
		.is_alone = need_is_whole(&need),
		.declared_mib = declared_mib,
		.tolerance_percent = settings->tolerance_percent,
		.due_ms = INT64_MAX,
		.begun_ms = now_ms,
	};
	text_copy(sampler->token, sizeof(sampler->token), token);
	if (!config->sim_gpus && !config->nvidia_smi)
		return;
	gpuset_for_each (slot, gpus) {
		struct sample_gpu *gpu = &sampler->gpus[sampler->gpu_count++];

		gpu->slot = (unsigned)slot;
		gpu->name = snapshot_gpu_name(&broker->view, gpu->slot);
		gpu->total_mib = broker->view.gpus[slot].file.gpu.total_mib;
	}
	if (sampler->gpu_count)
		sampler->due_ms = sampler->look_ms =
			sampler_next_moment_ms(sampler, now_ms);
}

unsigned sampler_poll_fds(
	const struct sampler *sampler, struct pollfd fds[PROBE_POLL_FDS])
{
	/* also without GPUs to sample: a probe that began while the job waited may still run */
	return prober_poll_fds(&sampler->broker->prober, fds);
}

int64_t sampler_wake_ms(const struct sampler *sampler)
{
	const struct prober *prober = &sampler->broker->prober;

	if (prober->run.is_running)
		return prober_deadline_ms(prober);
	return max_i64(sampler->due_ms, sampler->look_ms);
}

/* Sets the next moment; skips 1, 3, 7 … moments while results show nothing of the GPUs. */
static void sampler_await_next(struct sampler *sampler, int64_t now_ms)
{
	int64_t skips = 0;

	for (unsigned i = 0; i < sampler->misses && skips < SKIPS_MAX; i++)
		skips = min_i64(2 * skips + 1, SKIPS_MAX);
	sampler->due_ms = sampler->look_ms =
		sampler_next_moment_ms(sampler, now_ms + skips * sampler->interval_ms);
}

/* --- what is seen ------------------------------------------------------------------ */

/* Returns the probe's row of the GPU, or of the GPU that has the MIG instance; -1: none. */
static int probe_find_row(const struct probe *probe, const struct gpu_record *gpu)
{
	int mig;

	if (!gpu_is_instance(gpu))
		return probe_find_gpu(probe, gpu->uuid);
	mig = probe_find_mig(probe, gpu->uuid);
	return mig < 0 ? -1 : (int)probe->migs[mig].gpu;
}

/* Whether the process belongs to the job and its memory is known. */
static bool sampler_owns_process(
	const struct sampler *sampler, const struct probe_process *process)
{
	const struct snapshot_lease own = {
		.lease.owner = sampler->broker->ticket.owner,
	};
	struct process_lease lease;

	if (process->pid <= 0 || process->used_mib == PROBE_MIB_UNKNOWN)
		return false;
	process_lease_read((uint32_t)process->pid, &lease);
	return usage_is_by(&sampler->broker->view, &own, &lease);
}

/*
 * Returns the MiB that the job uses on the GPU of @row.  @is_part: the job has a MIG instance of
 * it.
 */
static uint64_t sampler_measure_mib(const struct sampler *sampler, int row, bool is_part)
{
	const struct snapshot *view = &sampler->broker->view;
	const struct probe_gpu *seen = &view->probe.gpus[row];
	uint64_t used_mib = 0;
	bool is_shown = false;

	for (uint32_t i = 0; i < view->probe.process_count; i++) {
		const struct probe_process *process = &view->probe.processes[i];

		if ((int)process->gpu != row || !sampler_owns_process(sampler, process))
			continue;
		used_mib += process->used_mib;
		is_shown = true;
	}
	if (!is_shown && sampler->is_alone && !is_part &&
		seen->used_mib > usage_idle_mib(&view->usage, seen))
		return seen->used_mib;
	return used_mib;
}

/* Returns the longest stretch until @at_ms in which no sample showed the GPU. */
static int64_t sample_gpu_unseen_ms(
	const struct sampler *sampler, const struct sample_gpu *gpu, int64_t at_ms)
{
	return max_i64(gpu->unseen_ms,
		at_ms - (gpu->seen_ms ? gpu->seen_ms : sampler->begun_ms));
}

/* Counts one GPU of a result.  Returns false if the result does not show it. */
static bool sample_gpu_count(struct sampler *sampler, struct sample_gpu *gpu)
{
	struct snapshot *view = &sampler->broker->view;
	struct snapshot_gpu *known = &view->gpus[gpu->slot];
	bool is_part = gpu_is_instance(&known->file.gpu);
	int row = probe_find_row(&view->probe, &known->file.gpu);
	const struct probe_gpu *seen;

	known->row =
		row; /* the view's other readers name the GPU by this newer probe as well */
	if (row < 0 || !view->probe.gpus[row].is_known)
		return false;
	seen = &view->probe.gpus[row];
	gpu->unseen_ms = sample_gpu_unseen_ms(sampler, gpu, view->probe.started_ms);
	gpu->seen_ms = view->probe.started_ms;
	gpu->now_mib = sampler_measure_mib(sampler, row, is_part);
	if (gpu->now_mib > gpu->peak_mib)
		gpu->peak_mib = gpu->now_mib;
	if (seen->utilization < 0 || is_part)
		return true;
	gpu->busy_count++;
	gpu->busy_sum += (unsigned)seen->utilization;
	if ((unsigned)seen->utilization > gpu->busy_peak)
		gpu->busy_peak = (unsigned)seen->utilization;
	return true;
}

/* --- the peak in the lease --------------------------------------------------------- */

/* Whether @mib is more than the job has declared, plus the tolerance. */
static bool sampler_exceeds_declared(const struct sampler *sampler, uint64_t mib)
{
	return use_exceeds(sampler->declared_mib, mib, sampler->tolerance_percent);
}

/*
 * Writes the peak to the job's record in the lease file of @slot.  Returns whether the record has
 * it; false: the file is locked, was replaced or cannot be written, so try at the next moment.
 */
static bool sampler_note_peak_in(
	struct sampler *sampler, unsigned slot, uint64_t peak_mib)
{
	static char raw[LEASE_FILE_BYTES];
	const struct snapshot *view = &sampler->broker->view;
	struct lease_file file =
		view->gpus[slot].file; /* a copy: the view keeps no lock */
	unsigned records = 0;
	bool is_done = false;

	if (file.fd < 0 || !lease_file_is_current(view->dir, &file) ||
		lease_lock(&file, 0) != 0)
		return false;
	if (lease_read(&file, raw, &records) != 0)
		records = 0;
	for (unsigned at = 1; at <= records; at++) {
		struct lease lease;

		if (lease_decode(raw, at, &lease) != LEASE_RECORD ||
			strcmp(lease.owner.token, sampler->token) != 0)
			continue;
		if (peak_mib > lease.peak_mib) {
			lease.peak_mib = peak_mib;
			is_done = lease_write(&file, at, &lease) == 0;
		} else {
			is_done = true;
		}
		break;
	}
	lease_unlock(&file);
	return is_done;
}

/*
 * Writes the peak to the lease, where plans and --status find it, if it has grown enough to
 * matter.  One try per file without waiting: the process that holds its lock may be stopped, and
 * this process has a command to watch.
 */
static void sampler_note_peak(struct sampler *sampler)
{
	uint64_t peak_mib = sampler_peak_mib(sampler), noted_mib = sampler->noted_mib;
	bool is_done = true;

	if (peak_mib <= noted_mib)
		return;
	if (peak_mib - noted_mib < GROWTH_MIB &&
		(peak_mib - noted_mib) * 100 < noted_mib * GROWTH_PERCENT &&
		sampler_exceeds_declared(sampler, peak_mib) ==
			sampler_exceeds_declared(sampler, noted_mib))
		return;
	for (unsigned i = 0; i < sampler->gpu_count; i++)
		is_done =
			sampler_note_peak_in(sampler, sampler->gpus[i].slot, peak_mib) &&
			is_done;
	if (is_done)
		sampler->noted_mib = peak_mib;
}

/* --- sampling ---------------------------------------------------------------------- */

/* Counts the newest result, if it is new. */
static void sampler_count_result(struct sampler *sampler)
{
	struct snapshot *view = &sampler->broker->view;
	bool is_seen = false;

	if (!view->has_probe || view->probe.started_ms <= sampler->seen_ms ||
		view->probe.started_ms < sampler->begun_ms)
		return;
	sampler->seen_ms = view->probe.started_ms;
	if (sampler->is_simulated && !sampler->broker->prober.sees_use)
		return;
	for (unsigned i = 0; i < sampler->gpu_count; i++)
		is_seen = sample_gpu_count(sampler, &sampler->gpus[i]) || is_seen;
	sampler->count += is_seen;
	sampler->misses = is_seen ? 0 : sampler->misses + 1;
	prober_trust_again(&sampler->broker->prober);
	sampler_note_peak(sampler);
}

/* Asks for a result for the due moment; skips the moment if another job's result takes too long. */
static void sampler_request_result(struct sampler *sampler, int64_t now_ms)
{
	struct prober *prober = &sampler->broker->prober;

	if (prober->run.is_running)
		return;
	if (now_ms - sampler->due_ms >= PATIENCE_MS) {
		sampler_await_next(sampler, now_ms);
		return;
	}
	prober_want(prober, now_ms);
	if (prober->run.is_running)
		return;
	/* another process has just got a result (look at once), or is getting one (look again) */
	sampler->look_ms = prober->look_again_ms <= now_ms ? now_ms : now_ms + LOOK_MS;
}

void sampler_step(struct sampler *sampler, int64_t now_ms)
{
	struct prober *prober = &sampler->broker->prober;
	struct snapshot *view = &sampler->broker->view;

	prober_step(prober, now_ms, &view->probe, &view->has_probe);
	if (now_ms < sampler->due_ms)
		return;
	prober_refresh(prober, now_ms, &view->probe, &view->has_probe);
	sampler_count_result(sampler);
	if (sampler->seen_ms >= sampler_fresh_from_ms(sampler))
		sampler_await_next(sampler, now_ms);
	else
		sampler_request_result(sampler, now_ms);
}

/* --- results ----------------------------------------------------------------------- */

const struct sample_gpu *sampler_take_excess(struct sampler *sampler)
{
	for (unsigned i = 0; i < sampler->gpu_count; i++) {
		struct sample_gpu *gpu = &sampler->gpus[i];

		if (gpu->has_exceeded || !sampler_exceeds_declared(sampler, gpu->now_mib))
			continue;
		gpu->has_exceeded = true;
		return gpu;
	}
	return NULL;
}

bool sample_gpu_is_spanned(
	const struct sampler *sampler, const struct sample_gpu *gpu, int64_t life_ms)
{
	return use_is_spanned(
		sample_gpu_unseen_ms(sampler, gpu, sampler->begun_ms + life_ms), life_ms,
		sampler->interval_ms);
}

bool sampler_is_spanned(const struct sampler *sampler, int64_t life_ms)
{
	for (unsigned i = 0; i < sampler->gpu_count; i++)
		if (!sample_gpu_is_spanned(sampler, &sampler->gpus[i], life_ms))
			return false;
	return sampler->gpu_count > 0;
}

uint64_t sampler_now_mib(const struct sampler *sampler)
{
	uint64_t now_mib = 0;

	for (unsigned i = 0; i < sampler->gpu_count; i++)
		if (sampler->gpus[i].now_mib > now_mib)
			now_mib = sampler->gpus[i].now_mib;
	return now_mib;
}

uint64_t sampler_peak_mib(const struct sampler *sampler)
{
	uint64_t peak_mib = 0;

	for (unsigned i = 0; i < sampler->gpu_count; i++)
		if (sampler->gpus[i].peak_mib > peak_mib)
			peak_mib = sampler->gpus[i].peak_mib;
	return peak_mib;
}

bool sampler_utilization(
	const struct sampler *sampler, unsigned *ret_mean, unsigned *ret_peak)
{
	uint64_t sum = 0, count = 0;
	unsigned peak = 0;

	for (unsigned i = 0; i < sampler->gpu_count; i++) {
		const struct sample_gpu *gpu = &sampler->gpus[i];

		sum += gpu->busy_sum;
		count += gpu->busy_count;
		if (gpu->busy_peak > peak)
			peak = gpu->busy_peak;
	}
	if (!count)
		return false;
	*ret_mean = (unsigned)((sum + count / 2) / count);
	*ret_peak = peak;
	return true;
}

void sampler_describe(
	const struct sampler *sampler, int64_t life_ms, struct end_facts *ret)
{
	struct text peaks = TEXT_ON(ret->peaks), busy = TEXT_ON(ret->utilization);
	bool has_peak = sampler_peak_mib(sampler) != 0;
	unsigned mean, peak;

	ret->spans_run = has_peak && sampler_is_spanned(sampler, life_ms);
	for (unsigned i = 0; i < sampler->gpu_count && has_peak; i++) {
		char number[24];
		int size = snprintf(number, sizeof(number), "%s%llu", i ? "," : "",
			(unsigned long long)sampler->gpus[i].peak_mib);

		if (peaks.used + (size_t)size >= peaks.size)
			break; /* a truncated number would be a different number */
		text_add(&peaks, number);
	}
	if (sampler_utilization(sampler, &mean, &peak))
		text_addf(&busy, "%u/%u", mean, peak);
}
