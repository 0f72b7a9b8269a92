/*
 * Implements snapshot_find_facts() and snapshot_find_links() of snapshot.h: the facts that a plan
 * rests on, from the states of the GPUs and the live leases.
 */
#include <errno.h>

#include "array.h"
#include "clock.h"
#include "instance.h"
#include "prober.h"
#include "snapshot.h"
#include "usage.h"

struct need lease_need(const struct lease *lease)
{
	return need_declared(lease->share_percent, lease->vram_mib);
}

/* Returns when the lease ends at the latest; 0: unknown, as no time limit will end it. */
static int64_t lease_end_ms(const struct snapshot_lease *lease)
{
	const struct lease *record = &lease->lease;
	int64_t end_ms = record->limit_ms
				 ? record->since_ms + record->limit_ms + record->grace_ms
				 : INT64_MAX;

	/* nothing enforces a job's limit once its supervisor is dead */
	if (lease->is_dead || lease->is_orphaned)
		return 0;
	if (lease->sent_back_ms)
		end_ms = min_i64(end_ms, lease->sent_back_ms);
	if (lease->usual_end_ms)
		end_ms = min_i64(end_ms, lease->usual_end_ms);
	return end_ms == INT64_MAX ? 0 : end_ms;
}

/* Appends the live leases on @slot to ->uses, which has *@used items.  Returns 0 or -ENOMEM. */
static int add_uses(struct snapshot *snapshot, unsigned slot, size_t *used)
{
	struct plan_gpu *plan = &snapshot->plan[slot];

	for (size_t i = 0; i < snapshot->lease_count; i++) {
		const struct snapshot_lease *lease = &snapshot->leases[i];
		struct need need = lease_need(&lease->lease);
		struct plan_use *uses;

		if (lease->is_over || lease->aside != ASIDE_NOT ||
			!gpuset_has(&lease->lease.gpus, slot))
			continue;
		uses = array_grow(
			snapshot->uses, sizeof(*uses), *used, &snapshot->use_room);
		if (!uses)
			return -ENOMEM;
		snapshot->uses = uses;
		uses[(*used)++] = (struct plan_use){
			.percent = need.percent,
			.mib = usage_budget_mib(
				&snapshot->usage, &lease->lease, plan->total_mib),
			.end_ms = lease_end_ms(lease),
			.is_dead = lease->is_dead,
			.is_declared = need.mib != 0,
			.early = lease->early,
		};
		plan->use_count++;
	}
	return 0;
}

/* Fills ->uses.  The plan gets its pointers at the end, as the array may move while it grows. */
static int fill_uses(struct snapshot *snapshot)
{
	size_t used = 0;
	const struct plan_use *next;

	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		int r = add_uses(snapshot, slot, &used);

		if (r < 0)
			return r;
	}
	next = snapshot->uses;
	for (unsigned slot = 0; slot < snapshot->slots; slot++) {
		snapshot->plan[slot].uses = next;
		if (next)
			next += snapshot->plan[slot].use_count;
	}
	return 0;
}

/* Returns the place in the queue that the ticket of the lease had. */
static struct queue_place lease_place(const struct lease *lease)
{
	return (struct queue_place){ .priority = lease->priority,
		.number = lease->ticket,
		.order_ms = lease->early == LEASE_EARLY ? 0 : lease->early,
		.since_ms = lease->since_ms - lease->waited_ms };
}

/* Returns what the lease counts for the limits. */
static unsigned lease_percent(const struct lease *lease)
{
	struct need counts = { .percent = lease_counts_percent(lease) };

	return quota_percent(gpuset_count(&lease->gpus), &counts, 0);
}

/* Lists the live leases that are early (policy_seen.h).  Returns 0 or -ENOMEM. */
static int fill_early(struct snapshot *snapshot)
{
	size_t count = 0;

	for (size_t i = 0; i < snapshot->lease_count; i++) {
		struct snapshot_lease *seen = &snapshot->leases[i];
		const struct lease *lease = &seen->lease;
		struct plan_early *early;

		seen->early = 0;
		if (lease->early <= 0 || seen->is_over || seen->aside != ASIDE_NOT ||
			count == UINT16_MAX)
			continue;
		early = array_grow(
			snapshot->early, sizeof(*early), count, &snapshot->early_room);
		if (!early)
			return -ENOMEM;
		snapshot->early = early;
		early[count++] = (struct plan_early){ .place = lease_place(lease),
			.since_ms = lease->since_ms,
			.uid = lease->owner.uid,
			.percent = lease_percent(lease) };
		seen->early = (uint16_t)count;
	}
	snapshot->facts.early = snapshot->early;
	snapshot->facts.early_count = count;
	return 0;
}

/* Counts the leases of each user, for the limits. */
static void count_users(struct snapshot *snapshot)
{
	struct plan_facts *facts = &snapshot->facts;

	plan_users_begin(&snapshot->users);
	for (size_t i = 0; i < snapshot->lease_count; i++) {
		const struct snapshot_lease *lease = &snapshot->leases[i];
		struct plan_user *user = NULL;

		if (!lease->is_over && lease->aside == ASIDE_NOT)
			user = plan_users_enter(&snapshot->users, lease->lease.owner.uid);
		if (!user)
			continue;
		user->leases++;
		user->percent += lease_percent(&lease->lease);
	}
	facts->users = snapshot->users.all;
	facts->user_count = snapshot->users.count;
}

/*
 * Whether the compute mode allows only one process on the GPU, and that is not an MPS server, which
 * lets many share it.
 */
static bool gpu_is_solo(const struct probe *probe, int row)
{
	if (!probe_gpu_is_solo(&probe->gpus[row]))
		return false;
	for (uint32_t i = 0; i < probe->process_count; i++)
		if ((int)probe->processes[i].gpu == row && probe->processes[i].pid > 0 &&
			usage_is_mps_server((uint32_t)probe->processes[i].pid))
			return false;
	return true;
}

/* Whether all live leases on the GPU are set aside. */
static bool has_only_leases_aside(const struct snapshot *snapshot, unsigned slot)
{
	for (size_t i = 0; i < snapshot->lease_count; i++) {
		const struct snapshot_lease *lease = &snapshot->leases[i];

		if (!lease->is_over && lease->aside == ASIDE_NOT &&
			gpuset_has(&lease->lease.gpus, slot))
			return false;
	}
	return true;
}

/*
 * Returns the state of the GPU for the plan: as judged or, if all its leases are set aside, the
 * state that it would have without them, as far as that can be known.
 */
static enum gpu_state planned_state(
	const struct snapshot *snapshot, unsigned slot, int64_t now_ms)
{
	const struct snapshot_gpu *gpu = &snapshot->gpus[slot];

	if (gpu->state != GPU_LEASED || !has_only_leases_aside(snapshot, slot))
		return gpu->state;
	if (gpu->is_unusable || snapshot_withholds(snapshot, gpu) ||
		(snapshot->has_probe && snapshot_is_blind(snapshot, gpu)))
		return GPU_UNKNOWN;
	if (gpu->locked_until_ms > now_ms)
		return GPU_LOCKED;
	if (gpu->foreign_mib)
		return GPU_EXTERNAL;
	return gpu->settling_mib ? GPU_SETTLING : GPU_FREE;
}

static void fill_plan_gpu(struct snapshot *snapshot, unsigned slot, int64_t now_ms)
{
	const struct snapshot_gpu *gpu = &snapshot->gpus[slot];
	const struct probe_gpu *seen =
		gpu->row >= 0 ? &snapshot->probe.gpus[gpu->row] : NULL;
	struct plan_gpu *plan = &snapshot->plan[slot];

	plan->exists = gpu->exists && !gpu_is_parent(snapshot, gpu);
	plan->is_just_released = gpu->has_dead;
	plan->is_instance = gpu_is_instance(&gpu->file.gpu);
	plan->state = planned_state(snapshot, slot, now_ms);
	plan->index = snapshot_gpu_index(snapshot, slot);
	plan->total_mib = gpu->file.gpu.total_mib;
	plan->foreign_mib = gpu->foreign_mib;
	plan->settling_mib = gpu->settling_mib;
	if (!seen)
		return;
	if (seen->total_mib && !plan->is_instance)
		plan->total_mib = seen->total_mib;
	plan->is_solo = gpu_is_solo(&snapshot->probe, gpu->row);
	plan->is_busy = usage_is_busy(&snapshot->usage, seen) && gpu->lease < 0;
}

/* Places the windows: on which GPU, and when by the clock of the plan. */
static void place_windows(struct snapshot *snapshot, int64_t now_ms)
{
	const struct windows *windows = &snapshot->windows;
	int64_t real_ms = windows->count ? clock_real_ms() : 0;

	for (size_t i = 0; i < windows->count; i++)
		window_place(&windows->all[i],
			snapshot_find_gpu(snapshot, windows->all[i].uuid), real_ms,
			now_ms);
}

int snapshot_find_facts(struct snapshot *snapshot, int64_t now_ms)
{
	int r;

	/* only ->known: later pages were never touched, and should stay so */
	memset(snapshot->plan, 0, snapshot->known * sizeof(*snapshot->plan));
	for (unsigned slot = 0; slot < snapshot->slots; slot++)
		fill_plan_gpu(snapshot, slot, now_ms);
	snapshot->facts = (struct plan_facts){
		.gpus = snapshot->plan,
		.links = snapshot->has_links ? &snapshot->links : NULL,
		.now_ms = now_ms,
		.margin_mib = snapshot->usage.margin_mib,
		.limits = snapshot->limits,
		.windows = snapshot->windows.all,
		.window_count = snapshot->windows.count,
	};
	for (unsigned slot = 0; slot < snapshot->slots; slot++)
		if (snapshot->plan[slot].total_mib > snapshot->facts.limits.gpu_mib)
			snapshot->facts.limits.gpu_mib = snapshot->plan[slot].total_mib;
	place_windows(snapshot, now_ms);
	count_users(snapshot);
	r = fill_early(snapshot);
	return r < 0 ? r : fill_uses(snapshot);
}

/* --- how the GPUs are linked --------------------------------------------------------- */

/* With fewer GPUs, links cannot affect the choice. */
enum { CHOICE_LEAST = 3 };

/*
 * Lists the UUID of the GPU of each slot, of a MIG instance its parent's.  Does not use ->mig,
 * because new slots have not been judged yet.
 */
static void list_uuids(const struct snapshot *view, const char *uuids[GPUSET_MAX])
{
	const struct probe *probe = &view->probe;

	for (unsigned slot = 0; slot < view->slots; slot++) {
		const struct gpu_record *gpu = &view->gpus[slot].file.gpu;
		int mig = gpu_is_instance(gpu) ? probe_find_mig(probe, gpu->uuid) : -1;

		uuids[slot] =
			mig < 0 ? gpu->uuid : probe->gpus[probe->migs[mig].gpu].uuid;
	}
}

void snapshot_find_links(struct snapshot *view, struct prober *prober, int64_t now_ms)
{
	const char *uuids[GPUSET_MAX];
	const struct topology *topology;

	view->has_links = false;
	view->facts.links = NULL;
	if (!view->has_probe || view->probe.gpu_count < CHOICE_LEAST ||
		!prober_knows_topology(prober, now_ms, &view->probe))
		return;
	topology = prober_topology(prober);
	if (!topology)
		return;
	list_uuids(view, uuids);
	topology_to_links(topology, uuids, view->slots, &view->links);
	view->has_links = true;
	view->facts.links = &view->links;
}
