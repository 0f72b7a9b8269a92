#include "instance.h"
#include "probe_marks.h"
#include "usage.h"

bool usage_is_mps_server(uint32_t pid)
{
	struct process_stat stat;

	/* the kernel keeps 15 bytes of a name */
	return process_stat_read(pid, &stat) == 0 &&
	       strncmp(stat.comm, "nvidia-cuda-mps-server", 15) == 0;
}

/*
 * Returns @mib with the buffer for spikes on top, rounded up.  In two parts, so nothing overflows.
 */
static uint64_t with_buffer(const struct usage_policy *policy, uint64_t mib)
{
	return mib + mib / 100 * policy->spike_percent +
	       (mib % 100 * policy->spike_percent + 99) / 100;
}

uint64_t usage_budget_mib(
	const struct usage_policy *policy, const struct lease *lease, uint64_t total_mib)
{
	struct need need = lease_need(lease);
	uint64_t declared_mib = need_mib(&need, total_mib);

	return lease->peak_mib > declared_mib ? with_buffer(policy, lease->peak_mib)
					      : declared_mib;
}

/* --- the lease of a process -------------------------------------------------------- */

bool usage_is_by(const struct snapshot *view, const struct snapshot_lease *lease,
	const struct process_lease *signs)
{
	struct owner process = snapshot_lease_process(lease);

	/* a dead owner is no ancestor any more, and its pid may mean another process by now */
	return process_lease_belongs(signs, &process) ||
	       (!lease->is_dead && process.pidns == view->dir->pidns &&
		       process_lease_descends(signs, &process));
}

bool usage_is_left_over(const struct snapshot *view, unsigned slot, uint32_t pid)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		const struct snapshot_lease *lease = &view->leases[i];

		if (lease->is_over && gpuset_has(&lease->seen, slot) &&
			process_lease_is_of(pid, &lease->lease.owner))
			return true;
	}
	return false;
}

bool usage_is_settling(const struct snapshot *view, const struct snapshot_gpu *gpu,
	uint32_t pid, int64_t now_ms)
{
	/* memory of a process that has ended is listed for a moment after its end */
	return gpu->has_dead && now_ms - gpu->released_ms < view->usage.settle_ms &&
	       (!pid || usage_is_left_over(view, gpu->file.slot, pid) ||
		       process_has_vanished(pid));
}

/* Returns the live lease on @slot that process @pid belongs to, or NULL. */
static struct snapshot_lease *find_lease_of_process(
	struct snapshot *view, unsigned slot, uint32_t pid)
{
	struct process_lease signs;

	process_lease_read(pid, &signs);
	for (size_t i = 0; i < view->lease_count; i++) {
		struct snapshot_lease *lease = &view->leases[i];

		if (!lease->is_over && gpuset_has(&lease->lease.gpus, slot) &&
			usage_is_by(view, lease, &signs))
			return lease;
	}
	return NULL;
}

/* --- one GPU ----------------------------------------------------------------------- */

/* The memory of several processes together, and the process with the most. */
struct held_mib {
	uint64_t all, most;
	uint32_t by; /* its pid; 0: no process is seen */
};

/* The memory that was found on one GPU, in MiB; leases are counted in ->listed only. */
struct found {
	uint64_t listed; /* of all listed processes */
	struct held_mib foreign, settling;
};

/* Counts a process that belongs to no lease, as foreign or as settling. */
static void count_beside_leases(const struct snapshot *view,
	const struct snapshot_gpu *gpu, const struct probe_process *process,
	int64_t now_ms, struct found *found)
{
	uint64_t mib = with_buffer(&view->usage, process->peak_mib);
	uint32_t pid = process->pid > 0 ? (uint32_t)process->pid : 0;
	struct held_mib *held = &found->foreign;

	if (usage_is_mps_server((uint32_t)process->pid))
		return;
	if (usage_is_settling(view, gpu, pid, now_ms))
		held = &found->settling;
	held->all += mib;
	if (pid && (!held->by || mib > held->most)) {
		held->by = pid;
		held->most = mib;
	}
}

/* Whether the process belongs to the job being adopted. */
static bool is_adoptee(const struct snapshot *view, const struct probe_process *process)
{
	return view->adoptee && process->pid > 0 &&
	       process_lease_is_descendant((uint32_t)process->pid, view->adoptee);
}

/* Whether a job that is over has left the process: no live lease has the job's tag or token. */
static bool is_left_by_a_job(const struct snapshot *view, uint32_t pid)
{
	struct process_lease signs;

	process_lease_read(pid, &signs);
	for (size_t i = 0; i < view->lease_count; i++)
		if (!view->leases[i].is_over &&
			usage_is_by(view, &view->leases[i], &signs))
			return false;
	return signs.tag || signs.token[0];
}

void usage_find_past(const struct snapshot *view, struct snapshot_gpu *gpu)
{
	const struct probe *probe = &view->probe;
	uint64_t most_mib = usage_idle_mib(&view->usage, &probe->gpus[gpu->row]);

	for (uint32_t i = 0; i < probe->process_count; i++) {
		const struct probe_process *process = &probe->processes[i];
		uint32_t pid = (uint32_t)process->pid;

		if ((int)process->gpu != gpu->row || process->pid <= 0 ||
			process->peak_mib <= most_mib || usage_is_mps_server(pid) ||
			is_adoptee(view, process) || is_left_by_a_job(view, pid))
			continue;
		gpu->culprit = pid;
		gpu->past_mib = most_mib = process->peak_mib;
	}
}

/* Counts a process on the GPU, for its lease or beside all leases. */
static void count_process(struct snapshot *view, const struct snapshot_gpu *gpu,
	const struct probe_process *process, int64_t now_ms, struct found *found)
{
	uint64_t used_mib =
		process->used_mib == PROBE_MIB_UNKNOWN ? 0 : process->used_mib;
	struct snapshot_lease *lease = NULL;

	found->listed += used_mib;
	if (gpu->lease >= 0 && process->pid > 0)
		lease = find_lease_of_process(
			view, gpu->file.slot, (uint32_t)process->pid);
	if (!lease) {
		if (!is_adoptee(view, process))
			count_beside_leases(view, gpu, process, now_ms, found);
		return;
	}
	lease->is_seen = true;
	lease->here_mib += used_mib;
}

/*
 * Ends the count on one GPU: of each lease, notes its use there if that is the most on any GPU so
 * far, and its peak.
 */
static void note_lease_use(struct snapshot *view)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		struct snapshot_lease *lease = &view->leases[i];

		if (lease->here_mib > lease->seen_mib)
			lease->seen_mib = lease->here_mib;
		if (lease->here_mib > lease->lease.peak_mib)
			lease->lease.peak_mib = lease->here_mib;
		lease->here_mib = 0;
	}
}

/* Sets ->foreign_mib, ->settling_mib and ->culprit of a GPU, and the use of its leases. */
static void judge_gpu_usage(
	struct snapshot *view, struct snapshot_gpu *gpu, int64_t now_ms)
{
	const struct probe_gpu *seen = &view->probe.gpus[gpu->row];
	uint64_t idle_mib = usage_idle_mib(&view->usage, seen);
	struct found found = { .listed = 0 };
	struct held_mib *unlisted = usage_is_settling(view, gpu, 0, now_ms)
					    ? &found.settling
					    : &found.foreign;

	for (uint32_t i = 0; i < view->probe.process_count; i++)
		if ((int)view->probe.processes[i].gpu == gpu->row)
			count_process(
				view, gpu, &view->probe.processes[i], now_ms, &found);
	note_lease_use(view);
	/* memory in use that is of no listed process */
	if (seen->is_known && seen->used_mib > found.listed)
		unlisted->all += seen->used_mib - found.listed;
	/* the row of an instance is its parent's, so its memory says nothing of the instance */
	if (gpu_is_instance(&gpu->file.gpu) ||
		found.foreign.all + found.settling.all <= idle_mib)
		return;
	/* together above the idle threshold: foreign memory below it counts with what settles */
	if (found.foreign.all > idle_mib)
		gpu->foreign_mib = found.foreign.all;
	gpu->settling_mib = found.foreign.all + found.settling.all - gpu->foreign_mib;
	gpu->culprit = gpu->foreign_mib ? found.foreign.by : found.settling.by;
}

/*
 * Notes since when no probe has shown a process of a lease with a dead owner.  The time is kept in
 * the owner's liveness, which lasts from snapshot to snapshot.  After a gap between two probes it
 * begins anew, because the gap proves nothing.
 */
static void note_quiet(
	struct snapshot *view, struct snapshot_lease *lease, int64_t now_ms)
{
	const struct probe *probe = &view->probe;
	struct liveness *life =
		liveness_set_judge(&view->lives, &lease->lease.owner, true, now_ms);

	if (!life)
		return;
	if (lease->is_seen)
		life->quiet_ms = 0;
	else if (!life->quiet_ms ||
		 probe->started_ms - life->quiet_seen_ms > PROBE_GAP_MAX_MS)
		life->quiet_ms = probe->finished_ms;
	life->quiet_seen_ms = probe->finished_ms;
	lease->quiet_ms = life->quiet_ms;
}

void usage_judge(struct snapshot *view, int64_t now_ms)
{
	for (size_t i = 0; i < view->lease_count; i++) {
		struct snapshot_lease *lease = &view->leases[i];

		lease->seen_mib = lease->here_mib = 0;
		lease->quiet_ms = 0;
		lease->is_seen = false;
	}
	for (unsigned slot = 0; slot < view->slots; slot++) {
		struct snapshot_gpu *gpu = &view->gpus[slot];

		gpu->foreign_mib = gpu->settling_mib = gpu->past_mib = 0;
		gpu->culprit = 0;
		if (view->has_probe && gpu->row >= 0 &&
			(gpu->is_shared ||
				(gpu->lease < 0 && !gpu_is_instance(&gpu->file.gpu))))
			judge_gpu_usage(view, gpu, now_ms);
	}
	for (size_t i = 0; view->has_probe && i < view->lease_count; i++)
		if (view->leases[i].is_dead && !view->leases[i].is_over)
			note_quiet(view, &view->leases[i], now_ms);
}
