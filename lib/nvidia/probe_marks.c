#include "probe_marks.h"

/*
 * Whether @probe shows GPU @gpu unused.  snapshot_gpu_state.c has its own rule for GPUs that are
 * handed out: there a process with unknown memory counts by the GPU's total alone, and an MPS
 * server does not count.  Here both count as use, because no name is looked up, and because a job
 * that lingers is ended by idle_since_ms: in doubt the GPU is in use.
 */
static bool gpu_seems_unused(
	const struct probe *probe, uint32_t gpu, const struct usage_policy *policy)
{
	const struct probe_gpu *seen = &probe->gpus[gpu];
	uint64_t idle_mib = usage_idle_mib(policy, seen);

	if (!seen->is_known || seen->used_mib > idle_mib || usage_is_busy(policy, seen))
		return false;
	for (uint32_t i = 0; i < probe->process_count; i++)
		if (probe->processes[i].gpu == gpu &&
			probe->processes[i].used_mib > idle_mib)
			return false;
	return true;
}

void probe_mark_idle(struct probe *probe, const struct probe *before,
	const struct usage_policy *policy)
{
	bool is_near = before && before->finished_ms <= probe->finished_ms &&
		       probe->started_ms - before->finished_ms <= PROBE_GAP_MAX_MS;

	for (uint32_t i = 0; i < probe->gpu_count; i++) {
		struct probe_gpu *gpu = &probe->gpus[i];
		int row = is_near ? probe_find_gpu(before, gpu->uuid) : -1;

		gpu->idle_since_ms = 0;
		if (!gpu_seems_unused(probe, i, policy))
			continue;
		gpu->idle_since_ms = probe->finished_ms;
		if (row >= 0 && before->gpus[row].idle_since_ms > 0)
			gpu->idle_since_ms = min_i64(
				before->gpus[row].idle_since_ms, probe->finished_ms);
	}
}

/* Returns the most that was seen of @process on GPU @uuid before this probe; 0: nothing. */
static uint64_t find_peak(
	const struct probe *before, const char *uuid, const struct probe_process *process)
{
	int row = probe_find_gpu(before, uuid);

	for (uint32_t i = 0; row >= 0 && i < before->process_count; i++) {
		const struct probe_process *old = &before->processes[i];

		if ((int)old->gpu == row && old->pid == process->pid &&
			old->start == process->start)
			return old->peak_mib;
	}
	return 0;
}

void probe_mark_peaks(struct probe *probe, const struct probe *before)
{
	for (uint32_t i = 0; i < probe->process_count; i++) {
		struct probe_process *process = &probe->processes[i];
		uint64_t used_mib =
			process->used_mib == PROBE_MIB_UNKNOWN ? 0 : process->used_mib;

		process->peak_mib =
			before ? find_peak(
					 before, probe->gpus[process->gpu].uuid, process)
			       : 0;
		if (process->peak_mib < used_mib)
			process->peak_mib = used_mib;
	}
}
