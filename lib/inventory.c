#include <strings.h>

#include "inventory.h"
#include "parse.h"

static void describe(
	const struct snapshot *view, const struct probe_gpu *seen, struct gpu_record *gpu)
{
	text_copy(gpu->uuid, sizeof(gpu->uuid), seen->uuid);
	text_copy(gpu->boot, sizeof(gpu->boot), view->dir->boot);
	if (seen->index >= 0)
		gpu->index = (uint32_t)seen->index;
	/* a sick GPU says nothing of itself: what was known stays */
	if (seen->bus_id[0])
		text_copy(gpu->bus_id, sizeof(gpu->bus_id), seen->bus_id);
	if (seen->name[0])
		text_copy(gpu->model, sizeof(gpu->model), seen->name);
	if (seen->total_mib)
		gpu->total_mib = seen->total_mib;
}

static bool is_same(const struct gpu_record *a, const struct gpu_record *b)
{
	return a->index == b->index && a->total_mib == b->total_mib &&
	       strcmp(a->boot, b->boot) == 0 && strcmp(a->bus_id, b->bus_id) == 0 &&
	       strcmp(a->model, b->model) == 0 && strcmp(a->slot, b->slot) == 0;
}

/* Returns 1 where record 0 was rewritten, 0, or a negative errno. */
static int refresh(
	struct snapshot *view, struct snapshot_gpu *gpu, const struct probe_gpu *seen)
{
	static char raw[LEASE_FILE_BYTES];
	struct lease_file *file = &gpu->file;
	struct gpu_record wanted = file->gpu;
	unsigned records;
	int r;

	describe(view, seen, &wanted);
	lease_name_slot(file, wanted.slot);
	if (!gpu->is_broken && is_same(&file->gpu, &wanted))
		return 0;
	if (lease_lock(file, 0) != 0)
		return 0;
	r = lease_read(file, raw, &records);
	if (r >= 0) {
		/*
		 * Somebody may have paused it since.  A record that cannot be read, or names
		 * another slot, is made anew, and the file stays in doubt.
		 */
		wanted = file->gpu;
		wanted.is_lost =
			wanted.is_lost || r == LEASE_TROUBLE || lease_has_moved(file);
		lease_name_slot(file, wanted.slot);
		describe(view, seen, &wanted);
		r = lease_write_gpu(file, &wanted);
	}
	lease_unlock(file);
	return r < 0 ? r : 1;
}

/*
 * A file for a GPU that has none.  All files may have been removed together with the links to
 * them: as long as a job lives whose lease is missing, a new one is in doubt.
 */
static int add(struct snapshot *view, const struct probe_gpu *seen)
{
	struct gpu_record fresh = { .is_lost = snapshot_has_unknown(view) };
	uint32_t slot;
	int r;

	describe(view, seen, &fresh);
	r = lease_add_gpu(view->dir->fd, &fresh, &slot);
	return r < 0 ? r : 1;
}

int inventory_adopt(struct snapshot *view)
{
	int changed = 0;

	for (uint32_t row = 0; row < view->probe.gpu_count; row++) {
		const struct probe_gpu *seen = &view->probe.gpus[row];
		int known, r;

		if (!seen->uuid[0])
			continue;
		known = snapshot_find_gpu(view, seen->uuid);
		if (known >= 0 && view->gpus[known].is_unusable)
			continue; /* something lies in its place: not ours to remove */
		if (known >= 0 && view->gpus[known].file.fd >= 0)
			r = refresh(view, &view->gpus[known], seen);
		else
			r = add(view, seen);
		if (r < 0)
			return r;
		changed += r;
	}
	return changed;
}

/* --- choosing among them ----------------------------------------------------------- */

struct gpuset inventory_all(const struct snapshot *view)
{
	struct gpuset out = GPUSET_NONE;

	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].exists)
			gpuset_add(&out, slot);
	return out;
}

struct gpuset inventory_by_model(const struct snapshot *view, const char *model)
{
	struct gpuset out = inventory_all(view);

	gpuset_for_each (slot, &out)
		if (!strcasestr(view->gpus[slot].file.gpu.model, model))
			gpuset_remove(&out, (unsigned)slot);
	return out;
}

int inventory_by_index(const struct snapshot *view, uint32_t index)
{
	for (unsigned slot = 0; slot < view->slots; slot++)
		if (view->gpus[slot].exists && snapshot_gpu_index(view, slot) == index)
			return (int)slot;
	return -1;
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
		if (slot < 0)
			return out;
		gpuset_add(&out, (unsigned)slot);
		if (!list[size])
			return out;
		list += size + 1;
	}
}
