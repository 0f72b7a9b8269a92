#include <ctype.h>

#include "instance.h"
#include "parse.h"
#include "process_lease.h"
#include "usage.h"

/* MiB for each `gb` of a profile; see instance_least_mib(). */
enum { LEAST_MIB = 900, MOST_MIB = 1024 };

/* --- what the probe says ------------------------------------------------------------ */

/* Returns the 40 of "3g.40gb", "1c.3g.40gb", "1g.40gb+me"; 0: there is none. */
static uint64_t profile_gb(const char *profile)
{
	const char *end = strstr(profile, "gb"), *begin = end;
	char digits[8];
	uint64_t gb;

	while (begin && begin > profile && isdigit((unsigned char)begin[-1]))
		begin--;
	if (!end || end - begin >= (ptrdiff_t)sizeof(digits))
		return 0;
	text_copy(digits, (size_t)(end - begin) + 1, begin);
	return parse_u64(digits, UINT32_MAX, &gb, NULL) == 0 ? gb : 0;
}

uint64_t instance_least_mib(const char *profile)
{
	return profile_gb(profile) * LEAST_MIB;
}

uint64_t instance_most_mib(const char *profile)
{
	return profile_gb(profile) * MOST_MIB;
}

void instance_describe(
	const struct probe *probe, const struct probe_mig *mig, struct gpu_record *gpu)
{
	const struct probe_gpu *parent = &probe->gpus[mig->gpu];
	/* a blank takes three bytes in the record: %20 */
	int room = (int)(sizeof(gpu->model) - sizeof("%20MIG%20") - strlen(mig->profile));

	text_copy(gpu->uuid, sizeof(gpu->uuid), mig->uuid);
	gpu->device = mig->device;
	gpu->total_mib = instance_least_mib(mig->profile);
	if (parent->index >= 0)
		gpu->index = (uint32_t)parent->index;
	if (parent->bus_id[0])
		text_copy(gpu->bus_id, sizeof(gpu->bus_id), parent->bus_id);
	if (parent->name[0])
		(void)snprintf(gpu->model, sizeof(gpu->model), "%.*s MIG %s", room,
			parent->name, mig->profile);
}

/* Returns the row of the parent of @gpu: by the list of instances, or else by the bus; or -1. */
static int find_parent(const struct probe *probe, const struct gpu_record *gpu, int mig)
{
	if (mig >= 0)
		return (int)probe->migs[mig].gpu;
	for (uint32_t i = 0; i < probe->gpu_count; i++)
		if (gpu->bus_id[0] && strcmp(probe->gpus[i].bus_id, gpu->bus_id) == 0)
			return (int)i;
	return -1;
}

static bool lists_any(const struct probe *probe, int row)
{
	for (uint32_t i = 0; i < probe->mig_count; i++)
		if ((int)probe->migs[i].gpu == row)
			return true;
	return false;
}

bool instance_is_gone(const struct probe *probe, const struct gpu_record *gpu)
{
	int mig = probe_find_mig(probe, gpu->uuid), row = find_parent(probe, gpu, mig);

	return mig < 0 && row >= 0 && probe->gpus[row].is_known &&
	       (!probe->gpus[row].has_mig || lists_any(probe, row));
}

bool gpu_is_parent(const struct snapshot *snapshot, const struct snapshot_gpu *gpu)
{
	const struct probe_gpu *seen = snapshot->has_probe && gpu->row >= 0
					       ? &snapshot->probe.gpus[gpu->row]
					       : NULL;

	if (gpu_is_instance(&gpu->file.gpu))
		return false;
	return seen && seen->is_known ? seen->has_mig : gpu->file.gpu.has_mig;
}

/* --- processes on a parent ------------------------------------------------------------ */

static bool instance_has_settled(
	const struct snapshot *snapshot, const struct snapshot_gpu *gpu, int64_t now_ms)
{
	return !gpu->has_dead || now_ms - gpu->released_ms >= snapshot->usage.settle_ms;
}

/*
 * Whether the lease is on an instance of parent @row.  A lease that is over counts until its
 * instance has settled.
 */
static bool lease_is_on_parent(const struct snapshot *snapshot,
	const struct snapshot_lease *lease, int row, int64_t now_ms)
{
	const struct gpuset *set = lease->is_over ? &lease->seen : &lease->lease.gpus;

	gpuset_for_each (slot, set) {
		const struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		if (gpu_is_instance(&gpu->file.gpu) && gpu->row == row &&
			(!lease->is_over || !instance_has_settled(snapshot, gpu, now_ms)))
			return true;
	}
	return false;
}

static bool belongs_to_instance_lease(
	const struct snapshot *snapshot, uint32_t pid, int row, int64_t now_ms)
{
	struct process_lease signs;

	process_lease_read(pid, &signs);
	for (size_t i = 0; i < snapshot->lease_count; i++) {
		const struct snapshot_lease *lease = &snapshot->leases[i];

		if (lease_is_on_parent(snapshot, lease, row, now_ms) &&
			usage_is_by(snapshot, lease, &signs))
			return true;
	}
	return false;
}

/*
 * Returns the process with the most memory on parent @row, above the idle threshold; 0: none.  If
 * @slot is -1, only processes count that belong to no lease on an instance of the parent; else only
 * processes that the last lease of @slot has left.
 */
static uint32_t find_process(
	const struct snapshot *snapshot, int row, int slot, int64_t now_ms)
{
	const struct probe *probe = &snapshot->probe;
	uint64_t most = usage_idle_mib(&snapshot->usage, &probe->gpus[row]);
	uint32_t found = 0;

	for (uint32_t i = 0; i < probe->process_count; i++) {
		const struct probe_process *process = &probe->processes[i];
		uint32_t pid = (uint32_t)process->pid;

		/* unknown use, PROBE_MIB_UNKNOWN, counts as more than any other */
		if ((int)process->gpu != row || process->pid <= 0 ||
			process->used_mib <= most || usage_is_mps_server(pid))
			continue;
		if (slot >= 0 ? !usage_is_left_over(snapshot, (unsigned)slot, pid)
			      : belongs_to_instance_lease(snapshot, pid, row, now_ms))
			continue;
		found = pid;
		most = process->used_mib;
	}
	return found;
}

/*
 * Sets ->stranger of the instances without a lease.  Reads the processes of each parent once, and
 * not at all if all its instances are leased.
 */
static void find_strangers(struct snapshot *snapshot, int64_t now_ms)
{
	uint32_t strangers[GPUSET_MAX];
	struct gpuset looked = GPUSET_NONE;

	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		struct snapshot_gpu *gpu = &snapshot->gpus[slot];

		gpu->stranger = 0;
		if (gpu->mig < 0 || gpu->lease >= 0)
			continue;
		if (!gpuset_has(&looked, (unsigned)gpu->row))
			strangers[gpu->row] =
				find_process(snapshot, gpu->row, -1, now_ms);
		gpuset_add(&looked, (unsigned)gpu->row);
		gpu->stranger = strangers[gpu->row];
	}
}

void instances_find(struct snapshot *snapshot, int64_t now_ms)
{
	const struct probe *probe = &snapshot->probe;

	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		struct snapshot_gpu *gpu = &snapshot->gpus[slot];
		const struct gpu_record *record = &gpu->file.gpu;

		gpu->mig = -1;
		if (!gpu_is_instance(record))
			continue;
		gpu->row = -1;
		if (snapshot->has_probe) {
			gpu->mig = probe_find_mig(probe, record->uuid);
			gpu->row = find_parent(probe, record, gpu->mig);
		}
		if (gpu->lease >= 0 || gpu->mig >= 0)
			gpu->exists = true;
		else if (snapshot->has_probe && instance_is_gone(probe, record))
			gpu->exists = false;
	}
	find_strangers(snapshot, now_ms);
}

/* --- the state ----------------------------------------------------------------------- */

/*
 * Returns how much memory the parent of @gpu may have in use if @gpu itself is not in use.  Counts
 * instances with a lease.  Once @gpu has settled, it also counts other instances that still
 * settle; before that, their memory cannot be told from memory of the last lease on @gpu.
 */
static uint64_t memory_of_others(
	const struct snapshot *snapshot, const struct snapshot_gpu *gpu, int64_t now_ms)
{
	const struct probe *probe = &snapshot->probe;
	bool is_settled = instance_has_settled(snapshot, gpu, now_ms);
	uint64_t mib = usage_idle_mib(&snapshot->usage, &probe->gpus[gpu->row]);

	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		const struct snapshot_gpu *other = &snapshot->gpus[slot];

		if (other == gpu || other->mig < 0 || other->row != gpu->row)
			continue;
		if (other->lease >= 0 ||
			(is_settled && !instance_has_settled(snapshot, other, now_ms)))
			mib += instance_most_mib(probe->migs[other->mig].profile);
	}
	return mib;
}

enum gpu_state instance_judge(
	const struct snapshot *snapshot, struct snapshot_gpu *gpu, int64_t now_ms)
{
	const struct probe_gpu *parent = &snapshot->probe.gpus[gpu->row];
	bool is_settled = instance_has_settled(snapshot, gpu, now_ms);

	gpu->culprit = 0;
	if (!is_settled)
		gpu->culprit =
			find_process(snapshot, gpu->row, (int)gpu->file.slot, now_ms);
	if (gpu->culprit)
		return GPU_SETTLING;
	gpu->culprit = gpu->stranger;
	if (gpu->culprit)
		return GPU_EXTERNAL;
	if (parent->used_mib <= memory_of_others(snapshot, gpu, now_ms))
		return GPU_FREE;
	return is_settled ? GPU_EXTERNAL : GPU_SETTLING;
}
