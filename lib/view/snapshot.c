#include "instance.h"
#include "snapshot.h"

void snapshot_init(struct snapshot *snapshot, const struct statedir *dir)
{
	/* not the arrays: a waiter should hold no more memory than its GPUs need */
	snapshot->dir = dir;
	snapshot->usage = USAGE_POLICY_DEFAULT;
	snapshot->is_for_show = false;
	snapshot->adoptee = 0;
	snapshot->lives = LIVENESS_SET_ON(dir);
	snapshot->slots = snapshot->known = 0;
	snapshot->leases = NULL;
	snapshot->lease_count = snapshot->lease_room = 0;
	snapshot->lease_index = (struct token_index){ .places = NULL };
	snapshot->broken_records = 0;
	snapshot->names = (struct snapshot_names){ .inode = 0 };
	snapshot->windows = WINDOWS_NONE;
	snapshot->has_unknown_job = false;
	snapshot->unknown_since_ms = 0;
	snapshot->has_probe = false;
	snapshot->has_links = false;
	snapshot->limits = (struct plan_limits){ .user_leases = 0 };
	snapshot->uses = NULL;
	snapshot->use_room = 0;
	snapshot->early = NULL;
	snapshot->early_room = 0;
	probe_begin(&snapshot->probe, 0, 0);
}

void snapshot_close_files(struct snapshot *snapshot)
{
	for (unsigned slot = 0; slot < snapshot->known; slot++)
		lease_release(&snapshot->gpus[slot].file);
}

void snapshot_release(struct snapshot *snapshot)
{
	snapshot_close_files(snapshot);
	snapshot->known = snapshot->slots = 0;
	liveness_set_release(&snapshot->lives);
	windows_release(&snapshot->windows);
	free(snapshot->leases);
	free(snapshot->uses);
	snapshot->uses = NULL;
	snapshot->use_room = 0;
	free(snapshot->early);
	snapshot->early = NULL;
	snapshot->early_room = 0;
	snapshot->leases = NULL;
	snapshot->lease_count = snapshot->lease_room = 0;
	token_index_release(&snapshot->lease_index);
}

struct snapshot_gpu *snapshot_gpu_at(struct snapshot *snapshot, unsigned slot)
{
	struct snapshot_gpu *gpu = &snapshot->gpus[slot];

	if (slot == snapshot->known) {
		*gpu = (struct snapshot_gpu){ .file = { .fd = -1, .slot = slot },
			.row = -1 };
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
