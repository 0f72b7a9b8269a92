#include <errno.h>

#include "care.h"
#include "clock.h"
#include "explain.h"
#include "instance.h"
#include "inventory.h"
#include "process.h"
#include "request.h"
#include "view_parts.h"

enum { PROBE_FRESH_MS = 1000 }; /* a result this old is not asked for again */

uint32_t view_pid(const struct look *look, const struct owner *owner)
{
	return owner->pidns == look->context->dir.pidns ? owner->pid : 0;
}

/* --- GPUs -------------------------------------------------------------------------- */

/* Of a command that did not fit into its record /proc may have the rest. */
static void read_rest(uint32_t pid, char *out, size_t size)
{
	static const char mark[] = "\xe2\x80\xa6";
	size_t used = strlen(out), mark_size = sizeof(mark) - 1;
	char whole[VIEW_COMMAND_SIZE];

	if (!pid || used < mark_size || strcmp(out + used - mark_size, mark) != 0)
		return;
	/* unless it calls itself something else by now */
	if (process_command(pid, whole, sizeof(whole)) &&
		strncmp(whole, out, used - mark_size) == 0)
		text_copy(out, size, whole);
}

static void fill_lease(const struct look *look, const struct snapshot_lease *held,
	struct view_holder *out)
{
	const struct lease *lease = &held->lease;
	unsigned tolerance_percent = look->context->config.tolerance_percent;
	struct text user = TEXT_ON(out->user);

	out->ticket = lease_job(lease);
	out->attempt = lease->attempt ? lease->attempt : 1;
	out->pid = held->is_dead || lease->owner.pidns != look->context->dir.pidns
			   ? 0
			   : snapshot_lease_process(held).pid;
	out->is_lingering = held->is_dead;
	out->need = lease_need(lease);
	out->peak_mib = lease->peak_mib;
	out->is_over_declared =
		lease->vram_mib && care_compare(lease->vram_mib, lease->peak_mib,
					   tolerance_percent) == USE_OVER;
	out->age_ms = max_i64(0, look->now_ms - lease->since_ms);
	out->limit_ms = held->is_orphaned ? 0 : lease->limit_ms; /* nothing enforces it */
	describe_user(lease->owner.uid, lease->user, &user);
	if (!may_show_commands_of(lease->owner.uid))
		return;
	text_copy(out->name, sizeof(out->name), lease->name);
	text_copy(out->command, sizeof(out->command), lease->command);
	read_rest(out->pid, out->command, sizeof(out->command));
}

static void fill_process(uint32_t pid, struct view_holder *out)
{
	out->pid = pid;
	out->age_ms = VIEW_UNKNOWN;
	process_user(pid, out->user, sizeof(out->user));
	if (may_show_process(pid))
		(void)process_command(pid, out->command, sizeof(out->command));
}

static int compare_holders(const void *a, const void *b)
{
	const struct view_holder *x = a, *y = b;

	return (x->ticket > y->ticket) - (x->ticket < y->ticket);
}

/* Fills in who has the GPU, from @out on, and returns how many. */
static size_t fill_holders(
	const struct look *look, unsigned slot, struct view_holder *out)
{
	const struct snapshot *from = &look->snapshot;
	const struct snapshot_gpu *gpu = &from->gpus[slot];
	size_t count = 0;

	for (size_t i = 0; i < from->lease_count; i++)
		if (!from->leases[i].is_over &&
			gpuset_has(&from->leases[i].lease.gpus, slot))
			fill_lease(look, &from->leases[i], &out[count++]);
	qsort(out, count, sizeof(*out), compare_holders);
	if (!count && gpu->culprit && gpu->state != GPU_FREE)
		fill_process(gpu->culprit, &out[count++]);
	return count;
}

/* What is known of the card: from nvidia-smi, or else from when it was known last. */
static void fill_card(
	const struct snapshot *from, const struct snapshot_gpu *gpu, struct view_gpu *out)
{
	const struct gpu_record *record = &gpu->file.gpu;
	const struct probe_gpu *seen = gpu->row >= 0 ? &from->probe.gpus[gpu->row] : NULL;

	text_copy(out->uuid, sizeof(out->uuid), record->uuid);
	text_copy(out->bus_id, sizeof(out->bus_id), record->bus_id);
	text_copy(out->model, sizeof(out->model), record->model);
	out->total_mib = record->total_mib;
	out->used_mib = PROBE_MIB_UNKNOWN;
	out->utilization = VIEW_UNKNOWN;
	out->idle_ms = VIEW_UNKNOWN;
	out->is_paused = record->is_paused;
	text_copy(out->paused_by, sizeof(out->paused_by), record->paused_by);
	text_copy(out->reason, sizeof(out->reason), record->reason);
	/* of its instances nvidia-smi says no more */
	if (!seen || gpu_is_instance(record))
		return;
	if (seen->bus_id[0])
		text_copy(out->bus_id, sizeof(out->bus_id), seen->bus_id);
	if (seen->name[0])
		text_copy(out->model, sizeof(out->model), seen->name);
	if (seen->total_mib)
		out->total_mib = seen->total_mib;
	out->used_mib = seen->is_known ? seen->used_mib : PROBE_MIB_UNKNOWN;
	out->utilization = seen->utilization;
	if (seen->idle_since_ms > 0)
		out->idle_ms = max_i64(0, from->probe.finished_ms - seen->idle_since_ms);
}

/* The uuid of the GPU that an instance is on: by the probe, or what is on the same bus. */
static const char *parent_of(const struct snapshot *from, const struct snapshot_gpu *gpu)
{
	const struct gpu_record *own = &gpu->file.gpu;

	if (gpu->row >= 0)
		return from->probe.gpus[gpu->row].uuid;
	for (unsigned slot = 0; slot < from->slots; slot++) {
		const struct gpu_record *other = &from->gpus[slot].file.gpu;

		if (own->bus_id[0] && !gpu_is_instance(other) &&
			strcmp(other->bus_id, own->bus_id) == 0)
			return other->uuid;
	}
	return "";
}

/* What could be had of it by somebody who shares. */
static void fill_room(const struct snapshot *from, unsigned slot, struct view_gpu *out)
{
	const struct snapshot_gpu *gpu = &from->gpus[slot];
	const struct plan_gpu *plan = &from->plan[slot];
	uint64_t margin_mib = from->facts.margin_mib;
	struct room room = room_at(plan, INT64_MIN);
	struct need share = { .percent = room.percent };
	struct need memory = { .mib = room.mib > margin_mib ? room.mib - margin_mib : 0 };

	out->free_percent = out->free_mib = out->foreign_mib = VIEW_UNKNOWN;
	if (gpu->row < 0)
		return;
	/* what nobody has yet is not looked for */
	if (gpu->is_shared || (gpu->lease < 0 && !plan->is_instance))
		out->foreign_mib = (int64_t)gpu->foreign_mib;
	while (share.percent && !(gpu_admits(plan, &share, true) &&
					room_fits(&room, plan, &share, margin_mib)))
		share.percent--;
	out->free_percent = share.percent;
	if (!plan->total_mib)
		return;
	if (!memory.mib || !gpu_admits(plan, &memory, true) ||
		!room_fits(&room, plan, &memory, margin_mib))
		memory.mib = 0;
	out->free_mib = (int64_t)memory.mib;
}

/* A pause comes after the leases that it found. */
static enum gpu_state state_of(const struct snapshot_gpu *gpu, const struct view_gpu *out)
{
	if (gpu->lease < 0)
		return gpu->state;
	for (size_t i = 0; i < out->holder_count; i++)
		if (!out->holders[i].is_lingering)
			return GPU_LEASED;
	return GPU_LINGERING;
}

/* Returns how many hold it; they are put at @holders. */
static size_t fill_gpu(const struct look *look, unsigned slot, struct view_gpu *out,
	struct view_holder *holders)
{
	const struct snapshot *from = &look->snapshot;
	const struct snapshot_gpu *gpu = &from->gpus[slot];
	struct text why = TEXT_ON(out->why);

	fill_card(from, gpu, out);
	fill_room(from, slot, out);
	out->index = snapshot_gpu_index(from, slot);
	out->instance = snapshot_gpu_device(from, slot);
	out->has_mig = gpu_is_parent(from, gpu);
	if (out->instance >= 0)
		text_copy(out->parent, sizeof(out->parent), parent_of(from, gpu));
	out->row = gpu->row >= 0 ? gpu->row : VIEW_UNKNOWN;
	out->holders = holders;
	out->holder_count = fill_holders(look, slot, holders);
	out->state = state_of(gpu, out);
	if (gpu->state != GPU_LEASED || gpu->foreign_mib || gpu->settling_mib)
		explain_gpu(from, slot, &why);
	return out->holder_count;
}

/* Of this boot; and all that are on record where nobody can say what there is. */
static bool is_shown(const struct snapshot *from, unsigned slot)
{
	const struct snapshot_gpu *gpu = &from->gpus[slot];

	return gpu->exists || gpu->lease >= 0 ||
	       (!from->has_probe && gpu->file.fd >= 0 && !gpu->is_broken);
}

static int compare_gpus(const void *a, const void *b)
{
	const struct view_gpu *x = a, *y = b;

	if (x->index != y->index)
		return (x->index > y->index) - (x->index < y->index);
	if (x->instance != y->instance)
		return (x->instance > y->instance) - (x->instance < y->instance);
	return strcmp(x->uuid, y->uuid);
}

/* One process, or all leases. */
static size_t count_holders(const struct snapshot *from)
{
	size_t count = from->slots;

	for (size_t i = 0; i < from->lease_count; i++)
		count += gpuset_count(&from->leases[i].lease.gpus);
	return count;
}

static int fill_gpus(const struct look *look, struct view *view)
{
	const struct snapshot *from = &look->snapshot;
	size_t used = 0;

	view->gpus = calloc(from->slots + 1, sizeof(*view->gpus));
	view->holders = calloc(count_holders(from) + 1, sizeof(*view->holders));
	if (!view->gpus || !view->holders)
		return -ENOMEM;
	for (unsigned slot = 0; slot < from->slots; slot++) {
		view->broken_records +=
			from->gpus[slot].is_broken || from->gpus[slot].is_unusable;
		if (is_shown(from, slot))
			used += fill_gpu(look, slot, &view->gpus[view->gpu_count++],
				view->holders + used);
	}
	qsort(view->gpus, view->gpu_count, sizeof(*view->gpus), compare_gpus);
	return 0;
}

static int fill_migs(const struct look *look, struct view *view)
{
	const struct probe *probe = &look->snapshot.probe;

	if (!look->snapshot.has_probe || probe->mig_count == 0)
		return 0;
	view->migs = calloc(probe->mig_count, sizeof(*view->migs));
	if (!view->migs)
		return -ENOMEM;
	memcpy(view->migs, probe->migs, probe->mig_count * sizeof(*view->migs));
	view->mig_count = probe->mig_count;
	return 0;
}

/* --- all of it --------------------------------------------------------------------- */

static void fill_probe(const struct look *look, struct view *view)
{
	const struct snapshot *from = &look->snapshot;
	const struct prober_config *config = &look->prober.config;

	view->is_simulated = config->sim_gpus != 0;
	view->has_nvidia_smi = config->nvidia_smi != NULL;
	view->is_probe_old = look->is_probe_old;
	view->probe_age_ms = VIEW_UNKNOWN;
	if (!from->has_probe)
		return;
	view->probe_age_ms = max_i64(0, look->now_ms - from->probe.finished_ms);
	text_copy(view->trouble, sizeof(view->trouble), from->probe.trouble.text);
}

static int take(struct look *look, struct view *view, struct why *why)
{
	int r = look_probe(look, look->begun_ms - PROBE_FRESH_MS);

	if (r == 0)
		r = look_read(look, why);
	if (r == 0 && look_is_doubtful(look)) {
		r = look_probe(look, look->begun_ms);
		if (r == 0)
			r = look_read(look, why);
	}
	if (r < 0)
		return r;
	*view = (struct view){
		.real_ms = clock_real_ms(),
		.directory = look->context->dir.path,
		.broken_records = look->snapshot.broken_records + look->has_broken_row,
		.slotless = inventory_count_slotless(&look->snapshot),
	};
	fill_probe(look, view);
	r = fill_gpus(look, view);
	if (r == 0)
		r = fill_migs(look, view);
	if (r == 0)
		r = view_fill_jobs(look, view);
	if (r == 0)
		r = view_fill_gpuless(look, view);
	return r;
}

static struct look look; /* too big for the stack */

int view_take(const struct context *context, struct view *ret, struct why *why)
{
	struct view view = VIEW_NONE;
	int r;

	look_init(&look, context, VIEW_JOBS_MAX);
	look.snapshot.limits = request_limits(&context->config);
	r = take(&look, &view, why);
	look_release(&look);
	if (r < 0) {
		view_release(&view);
		if (!why->text[0])
			why_set(why, "cannot look: %s", strerror(-r));
		return r;
	}
	*ret = view;
	return 0;
}

void view_release(struct view *view)
{
	free(view->gpus);
	free(view->holders);
	free(view->migs);
	free(view->jobs);
	free(view->gpuless);
	*view = VIEW_NONE;
}
