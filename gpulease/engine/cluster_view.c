#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "cluster_view.h"
#include "diag.h"
#include "exitcodes.h"
#include "show_cells.h"
#include "slurm_reason.h"

/* --- jobs that run ----------------------------------------------------------------- */

void cluster_view_holder(const struct cluster_job *job, unsigned percent, int64_t now_ms,
	struct view_holder *ret)
{
	*ret = (struct view_holder){
		.ticket = job->id,
		.attempt = job->attempt,
		.need = percent == 100 ? NEED_WHOLE : need_declared(percent, 0),
		.is_lingering = strcmp(job->state->name, "COMPLETING") == 0,
		.age_ms = job->start_s > 0 ? max_i64(0, now_ms - job->start_s * 1000)
					   : VIEW_UNKNOWN,
		.limit_ms = job->limit_s * 1000,
	};
	text_copy(ret->user, sizeof(ret->user), job->user);
	text_copy(ret->name, sizeof(ret->name), job->name);
	text_copy(ret->command, sizeof(ret->command), job->command);
}

static int make_holders(struct cluster *cluster, struct view *view)
{
	const struct cluster_places *places = &cluster->places;

	view->holders = calloc(places->count + 1, sizeof(*view->holders));
	if (!view->holders)
		return -ENOMEM;
	for (size_t i = 0; i < places->count; i++)
		cluster_view_holder(&cluster->jobs.list[places->list[i].job],
			places->list[i].percent, view->real_ms, &view->holders[i]);
	return 0;
}

/* Collects the jobs that run without a GPU, and counts those that run. */
static int make_gpuless(struct cluster *cluster, struct view *view)
{
	const struct cluster_jobs *jobs = &cluster->jobs;
	bool *has_gpu = calloc(jobs->count + 1, sizeof(*has_gpu));

	view->gpuless = calloc(jobs->count + 1, sizeof(*view->gpuless));
	if (!has_gpu || !view->gpuless) {
		free(has_gpu);
		return -ENOMEM;
	}
	for (size_t i = 0; i < cluster->places.count; i++)
		has_gpu[cluster->places.list[i].job] = true;
	for (size_t i = 0; i < jobs->count; i++) {
		if (jobs->list[i].state->phase != SLURM_RUNS)
			continue;
		view->running++;
		if (!has_gpu[i] && !jobs->list[i].gpus && !jobs->list[i].shards)
			cluster_view_holder(&jobs->list[i], 100, view->real_ms,
				&view->gpuless[view->gpuless_count++]);
	}
	free(has_gpu);
	return 0;
}

/* --- GPUs -------------------------------------------------------------------------- */

static enum gpu_state state_of(const struct cluster_node *node, bool is_used)
{
	static const enum gpu_state states[] = {
		[NODE_WORKS] = GPU_FREE,
		[NODE_PAUSED] = GPU_PAUSED,
		[NODE_DOWN] = GPU_UNKNOWN,
	};

	return is_used ? GPU_LEASED : states[node->phase];
}

/* Returns the part of the GPU that is free for jobs with shards, or that is free at all. */
static int64_t free_percent(
	const struct cluster_node *node, unsigned index, const struct view_gpu *gpu)
{
	unsigned used, all;

	if (gpu->state == GPU_FREE)
		return 100;
	if (node->phase == NODE_WORKS && gpuset_has(&node->shared, index))
		return gres_shards_of(node->shard_use, index, &used, &all) && used <= all
			       ? (int64_t)(all - used) * 100 / all
			       : VIEW_UNKNOWN;
	return 0;
}

static void explain(const struct cluster_node *node, struct view_gpu *gpu)
{
	struct text why = TEXT_ON(gpu->why);

	cluster_node_explain(node, &why);
	if (!why.used && gpu->state == GPU_LEASED && !gpu->holder_count)
		text_add(&why, "is used by a job that you may not see");
	gpu->why_verb_size = why.used ? strlen("is ") : 0;
}

/* Makes the GPU @index of @node; its leases begin at *@at of ->holders, which moves on. */
static void make_gpu(const struct cluster *cluster, const struct view *view,
	const struct cluster_node *node, unsigned index, size_t *at, struct view_gpu *gpu)
{
	const struct cluster_places *places = &cluster->places;
	struct text uuid = TEXT_ON(gpu->uuid);

	*gpu = (struct view_gpu){
		.index = index,
		.node = node->name,
		.instance = VIEW_UNKNOWN,
		.row = VIEW_UNKNOWN,
		.used_mib = PROBE_MIB_UNKNOWN,
		.utilization = VIEW_UNKNOWN,
		.idle_ms = VIEW_UNKNOWN,
		.free_mib = VIEW_UNKNOWN,
		.foreign_mib = VIEW_UNKNOWN,
		.is_paused = node->phase == NODE_PAUSED,
		.holders = &view->holders[*at],
	};
	text_addf(&uuid, "%s/%u", node->name, index);
	text_copy(gpu->model, sizeof(gpu->model), cluster_node_type(node, index));
	while (*at < places->count && places->list[*at].gpu == node->first + index) {
		gpu->holder_count++;
		++*at;
	}
	gpu->state = state_of(node, gpu->holder_count || gpuset_has(&node->used, index) ||
					    gpuset_has(&node->shared, index));
	if (gpu->holder_count && gpu->holders->is_lingering)
		gpu->state = GPU_LINGERING;
	gpu->free_percent = free_percent(node, index, gpu);
	text_copy(gpu->paused_by, sizeof(gpu->paused_by), node->by);
	text_copy(gpu->reason, sizeof(gpu->reason), node->reason);
	explain(node, gpu);
}

static int make_gpus(struct cluster *cluster, struct view *view)
{
	size_t at = 0;

	view->gpus = calloc(cluster->nodes.gpus + 1, sizeof(*view->gpus));
	if (!view->gpus)
		return -ENOMEM;
	for (size_t i = 0; i < cluster->nodes.count; i++) {
		const struct cluster_node *node = &cluster->nodes.list[i];

		for (unsigned index = 0; index < node->gpus; index++)
			make_gpu(cluster, view, node, index, &at,
				&view->gpus[view->gpu_count++]);
	}
	return 0;
}

/* --- the queue --------------------------------------------------------------------- */

static enum verdict_kind verdict_of(const struct slurm_reason *reason)
{
	static const struct {
		const char *kind;
		enum verdict_kind verdict;
	} kinds[] = { { "leased", VERDICT_LEASED }, { "behind", VERDICT_BEHIND },
		{ "gpu", VERDICT_GPU }, { "held", VERDICT_HELD },
		{ "limit", VERDICT_LIMIT } };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].kind, reason->kind) == 0)
			return kinds[i].verdict;
	return VERDICT_LIMIT;
}

/* Returns the first id in the list; 0: it is empty. */
static uint64_t first_id(const char *list)
{
	uint64_t id = 0;

	for (; is_digit(*list) && id < UINT64_MAX / 16; list++)
		id = id * 10 + (uint64_t)(*list - '0');
	return id;
}

static void explain_wait(
	const struct cluster_job *job, int64_t now_ms, struct view_job *waits)
{
	struct text why = TEXT_ON(waits->why);

	slurm_reason_add(job->reason, &why);
	if (waits->held_by)
		text_addf(&why, ": %s%s%s", job->after,
			job->after[0] && job->after_ok[0] ? "," : "", job->after_ok);
	if (job->array_tasks > 1)
		text_addf(&why, "; %u tasks of an array", job->array_tasks);
	if (waits->start_ms <= now_ms)
		return;
	text_add(&why, "; starts about ");
	show_add_time(&why, waits->start_ms, now_ms);
}

/* Returns how many shards a GPU of the cluster has; 0: it has none. */
static unsigned shards_of_gpu(const struct cluster_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->list[i].shards && nodes->list[i].gpus)
			return nodes->list[i].shards / nodes->list[i].gpus;
	return 0;
}

/* Sets what a job needs that asks for shards: a part of a GPU. */
static void need_shards(
	const struct cluster_nodes *nodes, unsigned shards, struct view_job *waits)
{
	unsigned all = shards_of_gpu(nodes);

	waits->gpus = 1;
	if (shards < all)
		waits->need = need_declared(shards * 100 / all, 0);
}

static void make_waiting(const struct cluster_nodes *nodes, const struct cluster_job *job,
	int64_t now_ms, struct view_job *waits)
{
	*waits = (struct view_job){
		.ticket = job->id,
		.attempt = job->attempt,
		.gpus = job->gpus,
		.need = NEED_WHOLE,
		.priority = job->priority,
		.is_singleton = job->is_singleton,
		.waits_ms = max_i64(0, now_ms - job->submit_s * 1000),
		.limit_ms = job->limit_s * 1000,
		.verdict = verdict_of(slurm_reason_find(job->reason)),
		.held_by = first_id(job->after[0] ? job->after : job->after_ok),
		.start_ms = job->start_s * 1000,
		.is_on_hold = strncmp(job->reason, "JobHeld", 7) == 0,
		.begin_ms =
			strcmp(job->reason, "BeginTime") == 0 ? job->start_s * 1000 : 0,
	};
	if (job->shards && !job->gpus)
		need_shards(nodes, job->shards, waits);
	text_copy(waits->after, sizeof(waits->after), job->after);
	text_copy(waits->after_ok, sizeof(waits->after_ok), job->after_ok);
	text_copy(waits->user, sizeof(waits->user), job->user);
	text_copy(waits->name, sizeof(waits->name), job->name);
	text_copy(waits->command, sizeof(waits->command), job->command);
	explain_wait(job, now_ms, waits);
}

static int make_queue(struct cluster *cluster, struct view *view)
{
	const struct cluster_jobs *jobs = &cluster->jobs;
	size_t count = 0;

	for (size_t i = 0; i < jobs->count; i++)
		count += jobs->list[i].state->phase == SLURM_WAITS;
	view->has_more_jobs = count > VIEW_JOBS_MAX;
	count = count < VIEW_JOBS_MAX ? count : VIEW_JOBS_MAX;
	view->jobs = calloc(count + 1, sizeof(*view->jobs));
	if (!view->jobs)
		return -ENOMEM;
	for (size_t i = 0; i < jobs->count && view->job_count < count; i++)
		if (jobs->list[i].state->phase == SLURM_WAITS)
			make_waiting(&cluster->nodes, &jobs->list[i], view->real_ms,
				&view->jobs[view->job_count++]);
	return 0;
}

/* --- all of it --------------------------------------------------------------------- */

int cluster_view_make(struct cluster *cluster, int64_t now_ms)
{
	struct view *view = &cluster->view;
	int r;

	*view = (struct view){
		.real_ms = now_ms, .directory = "", .probe_age_ms = VIEW_UNKNOWN
	};
	r = make_holders(cluster, view);
	if (r == 0)
		r = make_gpus(cluster, view);
	if (r == 0)
		r = make_gpuless(cluster, view);
	return r == 0 ? make_queue(cluster, view) : r;
}

static bool has_shards(const struct cluster_jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->list[i].shards)
			return true;
	return false;
}

int cluster_ask(bool only_queue, struct cluster *ret)
{
	struct cluster cluster = CLUSTER_NONE;
	int r = 0;

	if (!only_queue)
		r = cluster_nodes_ask(&cluster.nodes);
	if (r == 0)
		r = cluster_jobs_ask_live(&cluster.jobs);
	if (r == 0 && only_queue && has_shards(&cluster.jobs))
		r = cluster_nodes_ask(&cluster.nodes);
	if (r == 0 && !only_queue)
		r = cluster_places_ask(&cluster.jobs, &cluster.nodes, &cluster.places);
	if (r == 0 && cluster_view_make(&cluster, clock_real_ms()) < 0) {
		diag("%s", strerror(ENOMEM));
		r = EXIT_MISUSE;
	}
	if (r != 0)
		cluster_release(&cluster);
	else
		*ret = cluster;
	return r;
}

void cluster_release(struct cluster *cluster)
{
	view_release(&cluster->view);
	cluster_places_release(&cluster->places);
	cluster_jobs_release(&cluster->jobs);
	cluster_nodes_release(&cluster->nodes);
}
