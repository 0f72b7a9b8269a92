#include <errno.h>

#include "gpu_reason.h"
#include "privacy.h"
#include "use_verdict.h"
#include "clock.h"
#include "end_record.h"
#include "instance.h"
#include "inventory.h"
#include "lease_use.h"
#include "process_info.h"
#include "request.h"
#include "state_reader.h"
#include "use_rule.h"
#include "view.h"
#include "view_queue.h"
#include "wait_reason.h"

enum {
	PROBE_FRESH_MS = 1000, /* a result this young needs no new nvidia-smi */
	WATCHED_TIMES = 3,     /* intervals without a sample: the job is not watched */
};

/* --- GPUs -------------------------------------------------------------------------- */

/* Fills in how the job uses the GPU in @slot. */
static void holder_fill_use(const struct state_reader *reader,
	const struct snapshot_lease *held, unsigned slot, struct view_holder *out)
{
	const struct config *config = &reader->context->config;
	const struct lease *lease = &held->lease;
	struct lease_use use;
	struct use_limits limits = use_limits_of_job(&(struct use_limits){
		.after_ms = config->idle_after_ms, .ok_ms = lease->unused_ok_ms });
	unsigned at = 0;

	lease_use_read(reader->snapshot.dir, lease->owner.token, &use);
	out->unused_ok_ms = lease->unused_ok_ms;
	out->is_watched = lease->recorded_by[0] && !held->is_orphaned &&
			  reader->now_ms - max_i64(use.seen_ms, lease->since_ms) <
				  WATCHED_TIMES * config->idle_interval_ms;
	if (lease_use_peak_mib(&use) > out->peak_mib)
		out->peak_mib = lease_use_peak_mib(&use);
	out->has_use = use.samples > 0;
	if (!out->has_use)
		return;
	out->mean_percent = lease_use_mean(&use);
	out->unused_ms = use.unused_ms;
	out->unused_for_ms = VIEW_UNKNOWN;
	gpuset_for_each (each, &lease->gpus)
		at += (unsigned)each < slot;
	/* without samples, nothing is known of the time since the last one */
	if (!out->is_watched)
		return;
	out->unused_for_ms = lease_use_unused_ms(&use, at, lease->since_ms);
	if (out->unused_for_ms > 0)
		out->unused_for_ms += max_i64(0, reader->now_ms - use.seen_ms);
	out->is_unused = limits.after_ms && out->unused_for_ms >= limits.after_ms;
}

static void holder_fill_lease(const struct state_reader *reader,
	const struct snapshot_lease *held, unsigned slot, struct view_holder *out)
{
	const struct lease *lease = &held->lease;
	unsigned tolerance_percent = reader->context->config.tolerance_percent;
	struct text user = TEXT_ON(out->user);

	out->ticket = lease_job(lease);
	out->attempt = lease->attempt ? lease->attempt : 1;
	out->pid = held->is_dead || lease->owner.pidns != reader->context->dir.pidns
			   ? 0
			   : snapshot_lease_process(held).pid;
	out->is_lingering = held->is_dead;
	out->need = lease_need(lease);
	out->peak_mib = lease->peak_mib;
	out->is_over_declared =
		use_exceeds(lease->vram_mib, lease->peak_mib, tolerance_percent);
	out->age_ms = max_i64(0, reader->now_ms - lease->since_ms);
	out->limit_ms =
		held->is_orphaned ? 0 : lease->limit_ms; /* no process enforces it */
	holder_fill_use(reader, held, slot, out);
	describe_user(lease->owner.uid, lease->user, &user);
	if (!may_show_commands_of(lease->owner.uid))
		return;
	out->name_is_cut = state_reader_name(
		reader, &lease->owner, lease->name, lease->name_hash, out->name);
	text_copy(out->note, sizeof(out->note), lease->note);
	text_copy(out->command, sizeof(out->command), lease->command);
	process_info_complete(out->pid, out->command, sizeof(out->command));
}

static void holder_fill_process(uint32_t pid, struct view_holder *out)
{
	out->pid = pid;
	out->age_ms = VIEW_UNKNOWN;
	process_info_user(pid, out->user, sizeof(out->user));
	if (may_show_process(pid))
		(void)process_info_command(pid, out->command, sizeof(out->command));
}

static int compare_holders(const void *a, const void *b)
{
	const struct view_holder *x = a, *y = b;

	return (x->ticket > y->ticket) - (x->ticket < y->ticket);
}

/*
 * Fills in the holders of the GPU, from @out on: its leases, or else the process that uses it.
 * Returns how many there are.
 */
static size_t fill_holders(
	const struct state_reader *reader, unsigned slot, struct view_holder *out)
{
	const struct snapshot *from = &reader->snapshot;
	const struct snapshot_gpu *gpu = &from->gpus[slot];
	size_t count = 0;

	for (size_t i = 0; i < from->lease_count; i++)
		if (!from->leases[i].is_over &&
			gpuset_has(&from->leases[i].lease.gpus, slot))
			holder_fill_lease(reader, &from->leases[i], slot, &out[count++]);
	qsort(out, count, sizeof(*out), compare_holders);
	if (!count && gpu->culprit && gpu->state != GPU_FREE)
		holder_fill_process(gpu->culprit, &out[count++]);
	return count;
}

/* Describes the card by the answer of nvidia-smi, else by the record in the lease file. */
static void view_fill_card(
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
	/* the row of an instance describes its whole GPU */
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

/* Returns the uuid of an instance's GPU: from nvidia-smi, else of the GPU with its bus id. */
static const char *instance_parent(
	const struct snapshot *from, const struct snapshot_gpu *gpu)
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

/* Sets the largest share and the most memory of the GPU that a job could get now. */
static void view_fill_room(
	const struct snapshot *from, unsigned slot, struct view_gpu *out)
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
	/* foreign memory is judged only on a GPU that is shared or has no lease */
	if (gpu->is_shared || (gpu->lease < 0 && !plan->is_instance))
		out->foreign_mib = (int64_t)gpu->foreign_mib;
	/* the largest share that the plan would grant */
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

/* Returns the state to show.  A lease comes before a pause, because a pause lets it go on. */
static enum gpu_state shown_state(
	const struct snapshot_gpu *gpu, const struct view_gpu *out)
{
	if (gpu->lease < 0)
		return gpu->state;
	for (size_t i = 0; i < out->holder_count; i++)
		if (!out->holders[i].is_lingering)
			return GPU_LEASED;
	return GPU_LINGERING;
}

/* Describes the GPU in @slot, with its holders at @holders.  Returns how many these are. */
static size_t view_fill_gpu(const struct state_reader *reader, unsigned slot,
	struct view_gpu *out, struct view_holder *holders)
{
	const struct snapshot *from = &reader->snapshot;
	const struct snapshot_gpu *gpu = &from->gpus[slot];
	struct text why = TEXT_ON(out->why);

	view_fill_card(from, gpu, out);
	view_fill_room(from, slot, out);
	out->slot = slot;
	out->index = snapshot_gpu_index(from, slot);
	out->instance = snapshot_gpu_device(from, slot);
	out->has_mig = gpu_is_parent(from, gpu);
	if (out->instance >= 0)
		text_copy(out->parent, sizeof(out->parent), instance_parent(from, gpu));
	out->row = gpu->row >= 0 ? gpu->row : VIEW_UNKNOWN;
	out->holders = holders;
	out->holder_count = fill_holders(reader, slot, holders);
	out->state = shown_state(gpu, out);
	out->is_past_use = gpu->past_mib != 0;
	if (gpu->state != GPU_LEASED || gpu->foreign_mib || gpu->settling_mib)
		out->why_verb_size = explain_gpu(from, slot, &why);
	return out->holder_count;
}

/*
 * Whether to show the slot: its GPU was seen in this boot, or is leased.  Without an answer of
 * nvidia-smi, every GPU with a readable lease file is shown.
 */
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

/*
 * Returns the most holders that all GPUs together can have; see fill_holders().  Counts the jobs
 * that run in *@running.
 */
static size_t count_holders(const struct snapshot *from, unsigned *running)
{
	size_t count = from->slots;

	for (size_t i = 0; i < from->lease_count; i++) {
		count += gpuset_count(&from->leases[i].lease.gpus);
		*running += !from->leases[i].is_dead;
	}
	return count;
}

static int view_fill_gpus(const struct state_reader *reader, struct view *view)
{
	const struct snapshot *from = &reader->snapshot;
	size_t used = 0;

	view->gpus = calloc(from->slots + 1, sizeof(*view->gpus));
	view->holders =
		calloc(count_holders(from, &view->running) + 1, sizeof(*view->holders));
	if (!view->gpus || !view->holders)
		return -ENOMEM;
	for (unsigned slot = 0; slot < from->slots; slot++) {
		view->broken_records +=
			from->gpus[slot].is_broken || from->gpus[slot].is_unusable;
		if (is_shown(from, slot))
			used += view_fill_gpu(reader, slot,
				&view->gpus[view->gpu_count++], view->holders + used);
	}
	qsort(view->gpus, view->gpu_count, sizeof(*view->gpus), compare_gpus);
	return 0;
}

static int view_fill_migs(const struct state_reader *reader, struct view *view)
{
	const struct probe *probe = &reader->snapshot.probe;

	if (!reader->snapshot.has_probe || probe->mig_count == 0)
		return 0;
	view->migs = calloc(probe->mig_count, sizeof(*view->migs));
	if (!view->migs)
		return -ENOMEM;
	memcpy(view->migs, probe->migs, probe->mig_count * sizeof(*view->migs));
	view->mig_count = probe->mig_count;
	return 0;
}

/* --- windows ------------------------------------------------------------------------- */

/* The GPUs with a record of the window with number @id. */
static struct gpuset window_gpus(const struct snapshot *from, uint64_t id)
{
	struct gpuset set = GPUSET_NONE;

	for (size_t i = 0; i < from->windows.count; i++)
		if (from->windows.all[i].id == id && from->windows.all[i].slot >= 0)
			gpuset_add(&set, (unsigned)from->windows.all[i].slot);
	return set;
}

static int view_fill_windows(const struct state_reader *reader, struct view *view)
{
	const struct snapshot *from = &reader->snapshot;
	int64_t now_ms = from->facts.now_ms;

	if (!from->windows.count)
		return 0;
	view->windows = calloc(from->windows.count, sizeof(*view->windows));
	if (!view->windows)
		return -ENOMEM;
	for (size_t i = 0; i < from->windows.count; i++) {
		const struct window *window = &from->windows.all[i];
		struct gpuset gpus = window_gpus(from, window->id);
		struct view_window *out = &view->windows[view->window_count];
		struct text why = TEXT_ON(out->why);

		/* the first of its records shows it */
		if (window->end_ms <= now_ms || window->slot != gpuset_next(&gpus, 0) ||
			window->slot < 0)
			continue;
		view->window_count++;
		out->id = window->id;
		out->has_begun = window->begin_ms <= now_ms;
		out->from_ms = window->from_ms;
		out->until_ms = window->until_ms;
		end_record_name_gpus(from, &gpus, out->gpus, sizeof(out->gpus));
		text_copy(out->but, sizeof(out->but), window->but);
		text_copy(out->by, sizeof(out->by), window->by);
		text_copy(out->reason, sizeof(out->reason), window->reason);
		explain_window(window, now_ms, &why);
	}
	return 0;
}

/* --- all of it --------------------------------------------------------------------- */

static void view_fill_probe(const struct state_reader *reader, struct view *view)
{
	const struct snapshot *from = &reader->snapshot;
	const struct prober_config *config = &reader->prober.config;

	view->is_simulated = config->sim_gpus != 0;
	view->has_nvidia_smi = config->nvidia_smi != NULL;
	view->is_probe_old = reader->is_probe_old;
	view->probe_age_ms = VIEW_UNKNOWN;
	if (!from->has_probe)
		return;
	view->probe_age_ms = max_i64(0, reader->now_ms - from->probe.finished_ms);
	text_copy(view->trouble, sizeof(view->trouble), from->probe.trouble.text);
}

static int view_read(struct state_reader *reader, struct view *view, struct why *why)
{
	int r = state_reader_probe(reader, reader->begun_ms - PROBE_FRESH_MS);

	if (r == 0)
		r = state_reader_read(reader, why);
	/* the result may be older than the end of a lease: show the GPU as it is now */
	if (r == 0 && state_reader_is_doubtful(reader)) {
		r = state_reader_probe(reader, reader->begun_ms);
		if (r == 0)
			r = state_reader_read(reader, why);
	}
	if (r < 0)
		return r;
	*view = (struct view){
		.real_ms = clock_real_ms(),
		.directory = reader->context->dir.path,
		.broken_records =
			reader->snapshot.broken_records + reader->has_broken_row,
		.slotless = inventory_count_slotless(&reader->snapshot),
	};
	view_fill_probe(reader, view);
	r = view_fill_gpus(reader, view);
	if (r == 0)
		r = view_fill_migs(reader, view);
	if (r == 0)
		r = view_fill_jobs(reader, view);
	if (r == 0)
		r = view_fill_windows(reader, view);
	if (r == 0)
		r = view_fill_gpuless(reader, view);
	return r;
}

static struct state_reader reader; /* too big for the stack */

int view_take(const struct context *context, struct view *ret, struct why *why)
{
	struct view view = VIEW_NONE;
	int r;

	state_reader_init(&reader, context, VIEW_JOBS_MAX);
	reader.snapshot.limits = request_limits(&context->config);
	r = view_read(&reader, &view, why);
	state_reader_release(&reader);
	if (r < 0) {
		view_release(&view);
		if (!why->text[0])
			why_set(why, "cannot read the state: %s", strerror(-r));
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
	free(view->windows);
	*view = VIEW_NONE;
}

struct gpu_name view_gpu_name(const struct view_gpu *gpu)
{
	struct gpu_name name;
	struct text text = TEXT_ON(name.text);

	if (gpu->node)
		text_addf(&text, "%s/", gpu->node);
	text_addf(&text, "%u", gpu->index);
	if (gpu->instance >= 0)
		text_addf(&text, ":%lld", (long long)gpu->instance);
	return name;
}
