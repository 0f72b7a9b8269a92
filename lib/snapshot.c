#include "instance.h"
#include "snapshot.h"
#include "usage.h"

void snapshot_init(struct snapshot *snapshot, const struct statedir *dir)
{
	/* not the arrays: a waiter is to hold no more memory than its GPUs need */
	snapshot->dir = dir;
	snapshot->usage = USAGE_POLICY_DEFAULT;
	snapshot->is_for_show = false;
	snapshot->adoptee = 0;
	snapshot->lives = LIVES_ON(dir);
	snapshot->slots = snapshot->known = 0;
	snapshot->leases = NULL;
	snapshot->lease_count = snapshot->lease_room = 0;
	snapshot->lease_index = (struct token_index){ .places = NULL };
	snapshot->broken_records = 0;
	snapshot->moved = GPUSET_NONE;
	snapshot->names = (struct snapshot_names){ .inode = 0 };
	snapshot->is_account_open = false;
	snapshot->account_open_ms = 0;
	snapshot->has_probe = false;
	snapshot->has_links = false;
	snapshot->limits = (struct plan_limits){ .user_leases = 0 };
	snapshot->uses = NULL;
	snapshot->use_room = 0;
	probe_begin(&snapshot->probe, 0, 0);
}

void snapshot_release(struct snapshot *snapshot)
{
	for (unsigned slot = 0; slot < snapshot->known; slot++)
		lease_release(&snapshot->gpus[slot].file);
	snapshot->known = snapshot->slots = 0;
	lives_release(&snapshot->lives);
	free(snapshot->leases);
	free(snapshot->uses);
	snapshot->uses = NULL;
	snapshot->use_room = 0;
	snapshot->leases = NULL;
	snapshot->lease_count = snapshot->lease_room = 0;
	token_index_release(&snapshot->lease_index);
}

struct snapshot_gpu *snapshot_gpu_at(struct snapshot *snapshot, unsigned slot)
{
	struct snapshot_gpu *gpu = &snapshot->gpus[slot];

	if (slot == snapshot->known) {
		*gpu = (struct snapshot_gpu){ .file = { .fd = -1, .slot = slot } };
		snapshot->known++;
	}
	return gpu;
}

/* --- finding ----------------------------------------------------------------------- */

int snapshot_find_gpu(const struct snapshot *snapshot, const char *uuid)
{
	for (unsigned slot = 0; slot < snapshot->slots; slot++)
		if (strcmp(snapshot->gpus[slot].file.gpu.uuid, uuid) == 0)
			return (int)slot;
	return -1;
}

struct snapshot_lease *snapshot_find_token(struct snapshot *snapshot, const char *token)
{
	const struct token_items items = { snapshot->leases, snapshot->lease_count,
		sizeof(*snapshot->leases),
		offsetof(struct snapshot_lease, lease.owner.token) };
	size_t at = token_index_find(&snapshot->lease_index, &items, token);

	return at == SIZE_MAX ? NULL : &snapshot->leases[at];
}

struct owner snapshot_lease_process(const struct snapshot_lease *lease)
{
	const struct owner *owner = &lease->lease.owner;

	return lease->is_orphaned ? owner_as_command(owner, &lease->lease.runs) : *owner;
}

uint32_t snapshot_gpu_index(const struct snapshot *snapshot, unsigned slot)
{
	const struct snapshot_gpu *gpu = &snapshot->gpus[slot];

	if (gpu->row >= 0 && snapshot->probe.gpus[gpu->row].index >= 0)
		return (uint32_t)snapshot->probe.gpus[gpu->row].index;
	return gpu->file.gpu.index;
}

int64_t snapshot_gpu_device(const struct snapshot *snapshot, unsigned slot)
{
	const struct gpu_record *gpu = &snapshot->gpus[slot].file.gpu;
	int mig = snapshot->has_probe ? probe_find_mig(&snapshot->probe, gpu->uuid) : -1;

	if (!gpu_is_instance(gpu))
		return -1;
	return mig < 0 ? gpu->device : snapshot->probe.migs[mig].device;
}

struct gpu_name snapshot_gpu_name(const struct snapshot *snapshot, unsigned slot)
{
	int64_t device = snapshot_gpu_device(snapshot, slot);
	struct gpu_name name;
	struct text text = TEXT_ON(name.text);

	text_addf(&text, "%u", snapshot_gpu_index(snapshot, slot));
	if (device >= 0)
		text_addf(&text, ":%lld", (long long)device);
	return name;
}

/* --- the states of the GPUs -------------------------------------------------------- */

/* Its record, to be filled in; NULL where it has a file, or there is no slot any more. */
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

/* A GPU that has no file yet is known by the next free slot, in this snapshot alone. */
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

/* The row of the probe that speaks of @gpu; one without a uuid is known by its bus. */
static int find_row(const struct probe *probe, const struct gpu_record *gpu)
{
	int row = probe_find_gpu(probe, gpu->uuid);

	if (gpu_is_instance(gpu)) /* which has its parent's bus: instances_find() */
		return -1;
	for (uint32_t i = 0; row < 0 && i < probe->gpu_count; i++)
		if (!probe->gpus[i].uuid[0] && gpu->bus_id[0] &&
			strcmp(probe->gpus[i].bus_id, gpu->bus_id) == 0)
			row = (int)i;
	return row;
}

/*
 * The process with the most memory on GPU @row, at least @least_mib, an MPS server excepted:
 * it holds memory for others.  0: none that nvidia-smi lists.
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

/* Whether what nvidia-smi said of GPU @row is certain and means that nobody uses it. */
static bool is_idle(const struct snapshot *snapshot, int row)
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

/* What the probe says of a GPU without a live lease. */
static enum gpu_state judge_by_probe(
	struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms)
{
	/* nobody starts without a fresh one */
	if (!snapshot->has_probe)
		return snapshot->is_for_show ? GPU_UNKNOWN : GPU_FREE;
	if (snapshot_is_outdated(snapshot, gpu))
		return GPU_FREE;
	if (snapshot_is_blind(snapshot, gpu))
		return GPU_UNKNOWN;
	if (gpu_is_instance(&gpu->file.gpu))
		return instance_judge(snapshot, gpu, now_ms);
	if (is_idle(snapshot, gpu->row))
		return GPU_FREE;
	gpu->culprit = biggest_process(&snapshot->probe, gpu->row, 0);
	/* memory of the lease that has just ended, unless somebody else is seen with it */
	if (usage_is_settling(snapshot, gpu, gpu->culprit, now_ms))
		return GPU_SETTLING;
	return GPU_EXTERNAL;
}

/* A GPU whose leases leave room for others is theirs only while nvidia-smi shows it. */
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

static enum gpu_state judge_gpu(
	struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms)
{
	bool is_paused = gpu->file.gpu.is_paused;

	if (gpu->lease >= 0 && !gpu->is_shared && !is_paused)
		return snapshot->leases[gpu->lease].is_dead ? GPU_LINGERING : GPU_LEASED;
	if (is_paused)
		return GPU_PAUSED;
	if (gpu->is_unusable)
		return GPU_UNKNOWN;
	if (snapshot_withholds(snapshot, gpu)) {
		const struct owner *owner = &snapshot->unknown.owner;

		if (owner->pidns == snapshot->dir->pidns)
			gpu->culprit = owner->pid;
		return GPU_UNKNOWN;
	}
	if (gpu->locked_until_ms > now_ms)
		return GPU_LOCKED;
	return gpu->lease >= 0 ? judge_shared(snapshot, gpu)
			       : judge_by_probe(snapshot, gpu, now_ms);
}

/* One visible record shows the whole lease, also while its other files are being written. */
static void spread_leases(struct snapshot *snapshot)
{
	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		snapshot->gpus[slot].lease = -1;
		snapshot->gpus[slot].is_shared = true;
		snapshot->gpus[slot].lingers = false;
	}
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
	for (unsigned slot = 0; slot < snapshot->slots; slot++)
		if (snapshot->gpus[slot].lease < 0)
			snapshot->gpus[slot].is_shared = false;
}

int snapshot_judge(struct snapshot *snapshot, int64_t now_ms)
{
	if (snapshot->has_probe)
		add_unfiled_gpus(snapshot);
	spread_leases(snapshot);
	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		gpu->row = snapshot->has_probe
				   ? find_row(&snapshot->probe, &gpu->file.gpu)
				   : -1;
		gpu->exists = gpu->exists || gpu->row >= 0;
	}
	instances_find(snapshot, now_ms);
	usage_judge(snapshot, now_ms);
	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		if (snapshot_is_outdated(snapshot, gpu))
			gpu->foreign_mib = gpu->settling_mib = 0;
		gpu->state = judge_gpu(snapshot, gpu, now_ms);
	}
	return snapshot_find_facts(snapshot, now_ms);
}
