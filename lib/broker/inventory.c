#include <errno.h>
#include <strings.h>

#include "instance.h"
#include "inventory.h"
#include "model_name.h"
#include "parse.h"
#include "slots.h"

/* What the probe shows: a GPU or an instance; both NULL: the instance is gone. */
struct seen {
	const struct probe_gpu *gpu;
	const struct probe_mig *mig;
};

/* Copies what the probe shows of a GPU to its record 0. */
static void describe_seen_gpu(const struct probe_gpu *seen, struct gpu_record *gpu)
{
	text_copy(gpu->uuid, sizeof(gpu->uuid), seen->uuid);
	if (seen->is_known)
		gpu->has_mig = seen->has_mig;
	if (seen->index >= 0)
		gpu->index = (uint32_t)seen->index;
	/* a faulty GPU has no such values: keep the values of before */
	if (seen->bus_id[0])
		text_copy(gpu->bus_id, sizeof(gpu->bus_id), seen->bus_id);
	if (seen->name[0])
		text_copy(gpu->model, sizeof(gpu->model), seen->name);
	if (seen->total_mib)
		gpu->total_mib = seen->total_mib;
}

static void describe_seen(
	const struct snapshot *view, const struct seen *seen, struct gpu_record *gpu)
{
	bool is_there = seen->gpu || seen->mig;

	text_copy(gpu->boot, sizeof(gpu->boot), is_there ? view->dir->boot : "");
	if (seen->gpu)
		describe_seen_gpu(seen->gpu, gpu);
	else if (seen->mig)
		instance_describe(&view->probe, seen->mig, gpu);
}

static bool is_same_gpu(const struct gpu_record *a, const struct gpu_record *b)
{
	return a->index == b->index && a->total_mib == b->total_mib &&
	       a->has_mig == b->has_mig && a->device == b->device &&
	       strcmp(a->boot, b->boot) == 0 && strcmp(a->bus_id, b->bus_id) == 0 &&
	       strcmp(a->model, b->model) == 0 && strcmp(a->slot, b->slot) == 0;
}

/*
 * Brings record 0 of a lease file up to date.  Returns 1 if it was rewritten; 0 if it need not be,
 * or the file is locked; or a negative errno.
 */
static int refresh_file(
	struct snapshot *view, struct snapshot_gpu *gpu, const struct seen *seen)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &gpu->file;
	struct gpu_record wanted = file->gpu;
	unsigned records;
	int r;

	describe_seen(view, seen, &wanted);
	lease_name_slot(file, wanted.slot);
	if (!gpu->is_broken && is_same_gpu(&file->gpu, &wanted))
		return 0;
	if (lease_lock(file, 0) != 0)
		return 0;
	r = lease_read(file, raw, &records);
	if (r >= 0) {
		/*
		 * Takes record 0 as it is under the lock: the GPU may have been paused meanwhile.
		 * If it cannot be read or names another slot it is written anew, and the file
		 * stays doubtful.
		 */
		wanted = file->gpu;
		wanted.is_lost =
			wanted.is_lost || r == LEASE_TROUBLE || lease_has_moved(file);
		lease_name_slot(file, wanted.slot);
		describe_seen(view, seen, &wanted);
		r = lease_write_gpu(file, &wanted);
	}
	lease_unlock(file);
	return r < 0 ? r : 1;
}

/*
 * Makes a lease file for a GPU that has none.  If the lease of a live job is missing, all files may
 * have been removed together with their links, so the new file is doubtful.  Returns 1, 0 if there
 * is no slot for it, or a negative errno.
 */
static int add_file(struct snapshot *view, const struct seen *seen, const char *token)
{
	struct gpu_record fresh = { .is_lost = snapshot_has_unknown(view) };
	uint32_t slot;
	int r;

	describe_seen(view, seen, &fresh);
	r = lease_add_gpu(view->dir, &fresh, &slot);
	if (r == LEASE_NO_SLOT)
		r = slots_reuse(view, fresh.uuid, token);
	if (r == SLOTS_NONE)
		return 0; /* jobs can lease all GPUs but this one */
	return r < 0 ? r : 1;
}

/* Makes or refreshes the lease file of what the probe shows.  Returns as refresh_file(). */
static int adopt_seen(struct snapshot *view, const struct seen *seen, const char *uuid,
	const char *token)
{
	int known = uuid[0] ? snapshot_find_gpu(view, uuid) : -1;

	/* it has no uuid, or a file that we may not remove has the name of its lease file */
	if (!uuid[0] || (known >= 0 && view->gpus[known].is_unusable))
		return 0;
	if (known >= 0 && view->gpus[known].file.fd >= 0)
		return refresh_file(view, &view->gpus[known], seen);
	return add_file(view, seen, token);
}

/* Marks instances that are gone as not seen in this boot, for readers without a probe. */
static int forget_gone(struct snapshot *view)
{
	const struct seen nothing = { NULL, NULL };
	int changed = 0;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		struct snapshot_gpu *gpu = &view->gpus[slot];
		int r;

		if (gpu->file.fd < 0 || gpu->is_broken ||
			!gpu_is_instance(&gpu->file.gpu) ||
			!instance_is_gone(&view->probe, &gpu->file.gpu))
			continue;
		r = refresh_file(view, gpu, &nothing);
		if (r < 0)
			return r;
		changed += r;
	}
	return changed;
}

int inventory_adopt(struct snapshot *view, const char *token)
{
	const struct probe *probe = &view->probe;
	int r = 0, changed = 0;

	for (uint32_t row = 0; row < probe->gpu_count && r >= 0; row++) {
		const struct seen seen = { &probe->gpus[row], NULL };

		r = adopt_seen(view, &seen, probe->gpus[row].uuid, token);
		changed += r;
	}
	for (uint32_t i = 0; i < probe->mig_count && r >= 0; i++) {
		const struct seen seen = { NULL, &probe->migs[i] };

		r = adopt_seen(view, &seen, probe->migs[i].uuid, token);
		changed += r;
	}
	if (r >= 0) {
		r = forget_gone(view);
		changed += r;
	}
	return r < 0 ? r : changed;
}

unsigned inventory_count_slotless(const struct snapshot *view)
{
	const struct probe *probe = &view->probe;
	unsigned count = 0;

	if (!view->has_probe || view->slots < GPUSET_MAX)
		return 0;
	for (uint32_t row = 0; row < probe->gpu_count; row++)
		count += snapshot_find_gpu(view, probe->gpus[row].uuid) < 0;
	for (uint32_t i = 0; i < probe->mig_count; i++)
		count += snapshot_find_gpu(view, probe->migs[i].uuid) < 0;
	return count;
}

/* --- how users name GPUs -------------------------------------------------------- */

struct gpuset inventory_all(const struct snapshot *view)
{
	struct gpuset out = GPUSET_NONE;

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].exists && !gpu_is_parent(view, &view->gpus[slot]))
			gpuset_add(&out, slot);
	return out;
}

unsigned inventory_count_for(
	const struct snapshot *view, const struct gpuset *set, unsigned gpus)
{
	unsigned count = 0;

	gpuset_for_each (slot, set)
		count += gpus <= 1 || !gpu_is_instance(&view->gpus[slot].file.gpu);
	return count;
}

struct gpuset inventory_by_model(const struct snapshot *view, const char *model)
{
	struct gpuset out = inventory_all(view);

	gpuset_for_each (slot, &out)
		if (!model_name_matches(view->gpus[slot].file.gpu.model, model))
			gpuset_remove(&out, (unsigned)slot);
	return out;
}

int inventory_by_index(const struct snapshot *view, uint32_t index)
{
	int found = -1;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		if (!view->gpus[slot].exists || snapshot_gpu_index(view, slot) != index ||
			gpu_is_instance(&view->gpus[slot].file.gpu))
			continue;
		/* a card that is hidden from this process may have the same number */
		if (view->gpus[slot].row >= 0)
			return (int)slot;
		if (found < 0)
			found = (int)slot;
	}
	return found;
}

struct gpuset inventory_instances(const struct snapshot *view, uint32_t index)
{
	struct gpuset out = GPUSET_NONE;

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].exists && snapshot_gpu_index(view, slot) == index &&
			gpu_is_instance(&view->gpus[slot].file.gpu))
			gpuset_add(&out, slot);
	return out;
}

int inventory_by_instance(const struct snapshot *view, uint32_t index, uint32_t device)
{
	struct gpuset all = inventory_instances(view, index);

	gpuset_for_each (slot, &all)
		if (snapshot_gpu_device(view, (unsigned)slot) == device)
			return slot;
	return -1;
}

/* Finds the instance that CUDA uses for a GPU with MIG enabled: the first one; -1: none. */
static int first_instance(const struct snapshot *view, unsigned parent)
{
	struct gpuset all = inventory_instances(view, snapshot_gpu_index(view, parent));
	int first = -1;

	gpuset_for_each (slot, &all)
		if (first < 0 || snapshot_gpu_device(view, (unsigned)slot) <
					 snapshot_gpu_device(view, (unsigned)first))
			first = slot;
	return first;
}

int inventory_by_uuid(const struct snapshot *view, const char *text)
{
	int found = -1;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		if (!view->gpus[slot].exists ||
			strncasecmp(view->gpus[slot].file.gpu.uuid, text, strlen(text)) !=
				0)
			continue;
		if (found >= 0)
			return -1;
		found = (int)slot;
	}
	return found;
}

/* Adds one GPU and, if it has MIG enabled, the instances that are leased instead of it. */
static void add_gpu_to(const struct snapshot *view, unsigned slot, struct gpuset *set)
{
	gpuset_add(set, slot);
	if (gpu_is_parent(view, &view->gpus[slot])) {
		struct gpuset all =
			inventory_instances(view, snapshot_gpu_index(view, slot));

		*set = gpuset_or(set, &all);
	}
}

/* Finds the slot of one GPU of a range, of an instance, or of a uuid; -1: none. */
static int find_operand(
	const struct snapshot *view, const struct operand *operand, uint64_t index)
{
	char uuid[UUID_SIZE];

	if (operand->word) {
		(void)snprintf(uuid, sizeof(uuid), "%.*s", (int)operand->word_size,
			operand->word);
		return inventory_by_uuid(view, uuid);
	}
	return operand->has_instance ? inventory_by_instance(view, (uint32_t)index,
					       (uint32_t)operand->instance)
				     : inventory_by_index(view, (uint32_t)index);
}

int inventory_by_operand(const struct snapshot *view, const struct operand *operand,
	struct gpuset *set, struct why *why)
{
	for (uint64_t index = operand->first; index <= operand->last; index++) {
		int slot = find_operand(view, operand, index);

		if (slot >= 0)
			add_gpu_to(view, (unsigned)slot, set);
		else if (operand->word)
			why_set(why,
				"no GPU, or more than one, has a UUID that begins with '%.*s'",
				(int)operand->word_size, operand->word);
		else if (operand->has_instance)
			why_set(why, "there is no MIG instance %llu:%llu",
				(unsigned long long)index,
				(unsigned long long)operand->instance);
		else
			why_set(why, "there is no GPU %llu", (unsigned long long)index);
		if (slot < 0)
			return -ENOENT;
		if (operand->word)
			break;
	}
	return 0;
}

struct gpuset inventory_by_visible(const struct snapshot *view, const char *list)
{
	struct gpuset out = GPUSET_NONE;
	char entry[128];

	for (;;) {
		size_t size = strcspn(list, ",");
		uint64_t index;
		int slot = -1;

		(void)snprintf(entry, sizeof(entry), "%.*s",
			(int)(size < 127 ? size : 127), list);
		if (parse_u64(entry, UINT32_MAX, &index, NULL) == 0)
			slot = inventory_by_index(view, (uint32_t)index);
		else if (strncasecmp(entry, "GPU-", 4) == 0 ||
			 strncasecmp(entry, "MIG-", 4) == 0)
			slot = inventory_by_uuid(view, entry);
		if (slot >= 0 && gpu_is_parent(view, &view->gpus[slot]))
			slot = first_instance(view, (unsigned)slot);
		if (slot < 0)
			return out;
		gpuset_add(&out, (unsigned)slot);
		if (!list[size])
			return out;
		list += size + 1;
	}
}
