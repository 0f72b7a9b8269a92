/*
 * Implements snapshot_judge() of snapshot.h: the state of every GPU, from its leases and from what
 * the probe shows.
 */
#include "instance.h"
#include "snapshot.h"
#include "usage.h"

/*
 * Adds a GPU that has no file.  Returns its record, which the caller fills in; NULL if it has a
 * file or no slot is left.
 */
static struct gpu_record *add_unfiled(struct snapshot *snapshot, const char *uuid)
{
	struct snapshot_gpu *gpu;

	if (!uuid[0] || snapshot_find_gpu(snapshot, uuid) >= 0 ||
		snapshot->slots == GPUSET_MAX)
		return NULL;
	gpu = snapshot_gpu_at(snapshot, snapshot->slots);
	lease_release(&gpu->file);
	*gpu = (struct snapshot_gpu){
		.file = { .fd = -1, .slot = snapshot->slots },
	};
	text_copy(gpu->file.gpu.uuid, sizeof(gpu->file.gpu.uuid), uuid);
	snapshot->slots++;
	return &gpu->file.gpu;
}

/* Gives each GPU without a file the next free slot, in this snapshot only. */
static void add_unfiled_gpus(struct snapshot *snapshot)
{
	const struct probe *probe = &snapshot->probe;

	for (uint32_t row = 0; row < probe->gpu_count; row++) {
		const struct probe_gpu *from = &probe->gpus[row];
		struct gpu_record *gpu = add_unfiled(snapshot, from->uuid);

		if (!gpu)
			continue;
		text_copy(gpu->model, sizeof(gpu->model), from->name);
		gpu->total_mib = from->total_mib;
	}
	for (uint32_t i = 0; i < probe->mig_count; i++) {
		struct gpu_record *gpu = add_unfiled(snapshot, probe->migs[i].uuid);

		if (gpu)
			instance_describe(probe, &probe->migs[i], gpu);
	}
}

/*
 * Returns the row of @gpu in the probe, or -1.  A row without a UUID is of the GPU with its bus id.
 * Instances get their rows from instances_find(), because they have the bus id of their parent.
 */
static int find_probe_row(const struct probe *probe, const struct gpu_record *gpu)
{
	int row = probe_find_gpu(probe, gpu->uuid);

	if (gpu_is_instance(gpu))
		return -1;
	for (uint32_t i = 0; row < 0 && i < probe->gpu_count; i++)
		if (!probe->gpus[i].uuid[0] && gpu->bus_id[0] &&
			strcmp(probe->gpus[i].bus_id, gpu->bus_id) == 0)
			row = (int)i;
	return row;
}

/*
 * Returns the process with the most memory on GPU @row, at least @least_mib; 0: none is listed.
 * MPS servers do not count, because they hold memory for other processes.
 */
static uint32_t biggest_process(const struct probe *probe, int row, uint64_t least_mib)
{
	uint32_t biggest = 0;
	uint64_t most = 0;

	for (uint32_t i = 0; i < probe->process_count; i++) {
		const struct probe_process *process = &probe->processes[i];
		uint64_t mib =
			process->used_mib == PROBE_MIB_UNKNOWN ? 0 : process->used_mib;

		if ((int)process->gpu != row || process->pid <= 0 || mib < least_mib ||
			(biggest && mib <= most) ||
			usage_is_mps_server((uint32_t)process->pid))
			continue;
		biggest = (uint32_t)process->pid;
		most = mib;
	}
	return biggest;
}

/*
 * Whether GPU @row is known and not in use, so that it can be handed out.  probe_marks.c has
 * another rule, which says since when a GPU has been idle: there, processes with unknown memory and
 * MPS servers count as use.
 */
static bool gpu_is_idle(const struct snapshot *snapshot, int row)
{
	const struct probe_gpu *seen = &snapshot->probe.gpus[row];
	uint64_t idle_mib = usage_idle_mib(&snapshot->usage, seen);

	return seen->is_known && seen->used_mib <= idle_mib &&
	       !usage_is_busy(&snapshot->usage, seen) &&
	       !biggest_process(&snapshot->probe, row, idle_mib + 1);
}

bool snapshot_is_outdated(const struct snapshot *snapshot, const struct snapshot_gpu *gpu)
{
	return gpu->has_dead && snapshot->probe.started_ms < gpu->released_ms &&
	       !snapshot->is_for_show;
}

bool snapshot_is_blind(const struct snapshot *snapshot, const struct snapshot_gpu *gpu)
{
	const struct probe_gpu *seen;

	if (gpu->row < 0)
		return true;
	seen = &snapshot->probe.gpus[gpu->row];
	return !seen->is_known || probe_gpu_is_prohibited(seen) ||
	       (gpu_is_instance(&gpu->file.gpu) ? gpu->mig < 0 : seen->has_mig);
}

/* Returns the state of a GPU without a live lease. */
static enum gpu_state judge_by_probe(
	struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms)
{
	/* for a plan, free until there is a probe: no job starts without a fresh one */
	if (!snapshot->has_probe)
		return snapshot->is_for_show ? GPU_UNKNOWN : GPU_FREE;
	if (snapshot_is_outdated(snapshot, gpu))
		return GPU_FREE;
	if (snapshot_is_blind(snapshot, gpu))
		return GPU_UNKNOWN;
	if (gpu_is_instance(&gpu->file.gpu))
		return instance_judge(snapshot, gpu, now_ms);
	if (gpu_is_idle(snapshot, gpu->row)) {
		usage_find_past(snapshot, gpu);
		return gpu->past_mib ? GPU_EXTERNAL : GPU_FREE;
	}
	gpu->culprit = biggest_process(&snapshot->probe, gpu->row, 0);
	/* memory of a lease that has just ended becomes free by itself, other memory may not */
	if (usage_is_settling(snapshot, gpu, gpu->culprit, now_ms))
		return GPU_SETTLING;
	return GPU_EXTERNAL;
}

/*
 * Returns the state of a GPU with live leases that leave room: leased if the owner of any of them
 * lives, lingering if all are dead.  Unknown if the probe is blind to the GPU.
 */
static enum gpu_state judge_shared(
	const struct snapshot *snapshot, const struct snapshot_gpu *gpu)
{
	if (snapshot->has_probe && snapshot_is_blind(snapshot, gpu))
		return GPU_UNKNOWN;
	for (size_t i = 0; i < snapshot->lease_count; i++) {
		const struct snapshot_lease *lease = &snapshot->leases[i];

		if (!lease->is_dead && gpuset_has(&lease->lease.gpus, gpu->file.slot))
			return GPU_LEASED;
	}
	return GPU_LINGERING;
}

/*
 * Returns the state of a GPU.  The order of the tests decides which reason is shown and waited for.
 */
static enum gpu_state judge_gpu_state(
	struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms)
{
	bool is_paused = gpu->file.gpu.is_paused;

	/* a lease of the whole GPU decides before damage and locks: its record is good */
	if (gpu->lease >= 0 && !gpu->is_shared && !is_paused)
		return snapshot->leases[gpu->lease].is_dead ? GPU_LINGERING : GPU_LEASED;
	if (is_paused)
		return GPU_PAUSED;
	if (gpu->is_unusable)
		return GPU_UNKNOWN;
	if (snapshot_withholds(snapshot, gpu)) {
		const struct owner *owner = &snapshot->unknown.owner;

		/* a pid means something only in its own pid namespace */
		if (owner->pidns == snapshot->dir->pidns)
			gpu->culprit = owner->pid;
		return GPU_UNKNOWN;
	}
	if (gpu->locked_until_ms > now_ms)
		return GPU_LOCKED;
	return gpu->lease >= 0 ? judge_shared(snapshot, gpu)
			       : judge_by_probe(snapshot, gpu, now_ms);
}

/*
 * Sets ->lease, ->is_shared and ->lingers of all GPUs.  One readable record shows the whole set of
 * the lease, also while its owner has not yet written the files of the other GPUs.
 */
static void spread_leases(struct snapshot *snapshot)
{
	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		snapshot->gpus[slot].lease = -1;
		snapshot->gpus[slot].is_shared = true;
		snapshot->gpus[slot].lingers = false;
	}
	/* backwards, so that ->lease ends as the lowest index */
	for (size_t i = snapshot->lease_count; i-- > 0;) {
		const struct snapshot_lease *lease = &snapshot->leases[i];
		struct need need = lease_need(&lease->lease);

		if (lease->is_over)
			continue;
		gpuset_for_each (slot, &lease->lease.gpus) {
			if ((unsigned)slot >= snapshot->slots)
				continue;
			snapshot->gpus[slot].lease = (int)i;
			if (lease->is_dead)
				snapshot->gpus[slot].lingers = true;
			if (need_is_whole(&need))
				snapshot->gpus[slot].is_shared = false;
		}
	}
	/* a GPU without a lease is not shared, although no lease has denied it above */
	for (unsigned slot = 0; slot < snapshot->slots; slot++)
		if (snapshot->gpus[slot].lease < 0)
			snapshot->gpus[slot].is_shared = false;
}

int snapshot_judge(struct snapshot *snapshot, int64_t now_ms)
{
	if (snapshot->has_probe)
		add_unfiled_gpus(snapshot);
	spread_leases(snapshot);
	/* rows first: instances and use are judged by the rows of all GPUs */
	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		gpu->row = snapshot->has_probe
				   ? find_probe_row(&snapshot->probe, &gpu->file.gpu)
				   : -1;
		gpu->exists = gpu->exists || gpu->row >= 0;
	}
	instances_find(snapshot, now_ms);
	usage_judge(snapshot, now_ms);
	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		/* a probe from before the last lease ended would count its memory as foreign */
		if (snapshot_is_outdated(snapshot, gpu))
			gpu->foreign_mib = gpu->settling_mib = 0;
		gpu->state = judge_gpu_state(snapshot, gpu, now_ms);
	}
	return snapshot_find_facts(snapshot, now_ms);
}
