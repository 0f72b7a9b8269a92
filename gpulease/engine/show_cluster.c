#include <errno.h>
#include <stdlib.h>

#include "hostlist.h"
#include "show_cells.h"
#include "show_cluster.h"
#include "show_queue.h"

/* --- nodes ------------------------------------------------------------------------- */

enum {
	NODE_NAME,
	NODE_STATE,
	NODE_GPUS,
	NODE_FREE,
	NODE_TYPE,
	NODE_USERS,
};

static const struct table_column node_columns[] = {
	[NODE_NAME] = { .title = "NODE", .least = 8 },
	[NODE_STATE] = { .title = "STATE", .least = 6 },
	[NODE_GPUS] = { .title = "GPUS", .is_right = true },
	[NODE_FREE] = { .title = "FREE", .is_right = true },
	[NODE_TYPE] = { .title = "TYPE", .is_optional = true, .good = 16, .least = 6 },
	[NODE_USERS] = { .title = "USED BY", .good = 20, .least = 8 },
};

/* GPUs that a user has on a node; shares of GPUs count as such. */
struct user_part {
	const char *user;
	unsigned gpus, shares;
};

enum { PARTS_MAX = 64 };

static void add_part(
	struct user_part *parts, size_t *count, const char *user, bool is_share)
{
	size_t at = 0;

	while (at < *count && strcmp(parts[at].user, user) != 0)
		at++;
	if (at == PARTS_MAX)
		return;
	if (at == *count)
		parts[(*count)++] = (struct user_part){ .user = user };
	parts[at].gpus += !is_share;
	parts[at].shares += is_share;
}

/* Appends "alice 2, bob 1, others 1"; the last ones are users that are not shown to this one. */
static void add_users(
	const struct view *view, const struct cluster_node *node, struct text *out)
{
	struct user_part parts[PARTS_MAX];
	size_t count = 0;

	for (unsigned i = 0; i < node->gpus; i++) {
		const struct view_gpu *gpu = &view->gpus[node->first + i];

		for (size_t at = 0; at < gpu->holder_count; at++)
			add_part(parts, &count, gpu->holders[at].user,
				!need_is_whole(&gpu->holders[at].need));
		if (!gpu->holder_count && gpu->state == GPU_LEASED)
			add_part(parts, &count, "others", false);
	}
	for (size_t i = 0; i < count; i++) {
		text_addf(out, "%s%s", i ? ", " : "", parts[i].user);
		if (parts[i].gpus)
			text_addf(out, " %u", parts[i].gpus);
		if (parts[i].shares)
			text_addf(out, "%s%u share%s", parts[i].gpus ? "+" : " ",
				parts[i].shares, parts[i].shares == 1 ? "" : "s");
	}
}

static unsigned count_gpus(
	const struct view *view, const struct cluster_node *node, enum gpu_state state)
{
	unsigned count = 0;

	for (unsigned i = 0; i < node->gpus; i++)
		count += view->gpus[node->first + i].state == state;
	return count;
}

static void node_put_types(struct table *table, const struct cluster_node *node)
{
	char words[160];
	struct text text = TEXT_ON(words);

	for (size_t i = 0; i < node->type_count; i++) {
		const struct node_type *type = &node->types[i];

		if (node->type_count > 1)
			text_addf(&text, "%s%u %s", i ? ", " : "", type->count,
				type->name[0] ? type->name : "other");
		else
			text_add(&text, type->name);
	}
	table_put(table, NODE_TYPE, words);
}

/* "in use" says more than Slurm's words: a node is "mixed" also for its CPUs. */
static const char *node_word(const struct cluster_node *node, unsigned available)
{
	if (node->phase != NODE_WORKS)
		return node->state;
	return !node->gpus              ? node->state
	       : !available             ? "in use"
	       : available < node->gpus ? "partly"
					: "idle";
}

static void node_put_row(
	struct table *table, const struct view *view, const struct cluster_node *node)
{
	static const enum table_tint tints[] = {
		[NODE_PAUSED] = TINT_YELLOW,
		[NODE_DOWN] = TINT_RED,
	};
	unsigned available = count_gpus(view, node, GPU_FREE);
	char words[512];
	struct text users = TEXT_ON(words);

	table_row(table);
	table_put(table, NODE_NAME, node->name);
	table_put(table, NODE_STATE, node_word(node, available));
	table_tint(table, NODE_STATE,
		node->phase != NODE_WORKS ? tints[node->phase]
		: available               ? TINT_GREEN
					  : TINT_BLUE);
	table_putf(table, NODE_GPUS, "%u", node->gpus);
	table_putf(table, NODE_FREE, "%u", available);
	node_put_types(table, node);
	add_users(view, node, &users);
	table_put(table, NODE_USERS, words);
}

/* Whether one line says why both are not working. */
static bool is_same_note(const struct cluster_node *a, const struct cluster_node *b)
{
	return a->phase == b->phase && strcmp(a->state, b->state) == 0 &&
	       strcmp(a->reason, b->reason) == 0 && strcmp(a->by, b->by) == 0;
}

static bool is_noted_before(const struct cluster_nodes *nodes, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same_note(&nodes->list[i], &nodes->list[at]))
			return true;
	return false;
}

/* Prints "n[4-5]: down since 10:24:33: a fan is broken (root)". */
static int node_print_note(const struct cluster *cluster, size_t at,
	const struct table_style *style, FILE *out)
{
	const struct cluster_nodes *nodes = &cluster->nodes;
	const struct cluster_node *node = &nodes->list[at];
	autofree char *list = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&list, &size);
	struct hostlist_fold fold = { .out = memory };
	char words[1024];
	struct text line = TEXT_ON(words);

	if (!memory)
		return -errno;
	for (size_t i = at; i < nodes->count; i++)
		if (is_same_note(node, &nodes->list[i]))
			hostlist_fold(&fold, nodes->list[i].name);
	hostlist_fold_end(&fold);
	if (fclose(memory) != 0)
		return -errno;
	text_addf(&line, "%.512s: %s", list, node->state);
	if (node->since_s > 0) {
		text_add(&line, " since ");
		show_add_time(&line, node->since_s * 1000, cluster->view.real_ms);
	}
	if (node->reason[0])
		text_addf(&line, ": %s", node->reason);
	if (node->reason[0] && node->by[0])
		text_addf(&line, " (%s)", node->by);
	line_print(words, style, out);
	return 0;
}

static int print_notes(
	const struct cluster *cluster, const struct table_style *style, FILE *out)
{
	int r = 0;

	for (size_t i = 0; i < cluster->nodes.count && r == 0; i++)
		if (cluster->nodes.list[i].phase != NODE_WORKS &&
			!is_noted_before(&cluster->nodes, i))
			r = node_print_note(cluster, i, style, out);
	return r;
}

/* Prints "4 nodes with 8 GPUs: 4 in use, 2 free, 2 on nodes that take no jobs". */
static void print_sum(
	const struct cluster *cluster, const struct table_style *style, FILE *out)
{
	const struct view *view = &cluster->view;
	size_t with_gpus = 0, states[GPU_STATES] = { 0 }, kept;
	char words[160];
	struct text line = TEXT_ON(words);

	for (size_t i = 0; i < cluster->nodes.count; i++)
		with_gpus += cluster->nodes.list[i].gpus != 0;
	for (size_t i = 0; i < view->gpu_count; i++)
		states[view->gpus[i].state]++;
	kept = states[GPU_PAUSED] + states[GPU_UNKNOWN];
	text_addf(&line, "%zu node%s with %zu GPU%s: %zu in use, %zu free", with_gpus,
		with_gpus == 1 ? "" : "s", view->gpu_count,
		view->gpu_count == 1 ? "" : "s",
		states[GPU_LEASED] + states[GPU_LINGERING], states[GPU_FREE]);
	if (kept)
		text_addf(&line, ", %zu on nodes that take no jobs", kept);
	line_print(words, style, out);
}

static int show_nodes(
	const struct cluster *cluster, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(node_columns);
	int r = 0;

	if (!cluster->nodes.gpus)
		line_print("no node has a GPU", style, out);
	else
		print_sum(cluster, style, out);
	for (size_t i = 0; i < cluster->nodes.count; i++)
		if (cluster->nodes.list[i].gpus)
			node_put_row(&table, &cluster->view, &cluster->nodes.list[i]);
	if (cluster->nodes.gpus)
		r = show_and_release(&table, style, out);
	return r == 0 ? print_notes(cluster, style, out) : r;
}

/* --- jobs that have GPUs ----------------------------------------------------------- */

enum {
	RUN_JOB,
	RUN_USER,
	RUN_GPUS,
	RUN_NODES,
	RUN_AGE,
	RUN_LEFT,
	RUN_STATE,
	RUN_NAME,
	RUN_COMMAND,
};

static const struct table_column run_columns[] = {
	[RUN_JOB] = { .title = "JOB", .is_right = true },
	[RUN_USER] = { .title = "USER", .good = 8, .least = 6 },
	[RUN_GPUS] = { .title = "GPUS", .is_right = true },
	[RUN_NODES] = { .title = "ON", .good = 16, .least = 6 },
	[RUN_AGE] = { .title = "AGE", .is_right = true, .rank = 2 },
	[RUN_LEFT] = { "LEFT", .is_right = true, .is_optional = true, .rank = 1 },
	[RUN_STATE] = { "STATE", .is_optional = true, .rank = 3 },
	[RUN_NAME] = { .title = "NAME", .is_optional = true, .good = 12, .least = 6 },
	[RUN_COMMAND] = { .title = "COMMAND",
		.is_optional = true,
		.good = 14,
		.least = 8 },
};

/* Any state but the usual one, in lower case: "completing", "suspended". */
static void run_put_state(struct table *table, const char *state)
{
	char word[32];
	size_t at = 0;

	if (strcmp(state, "RUNNING") == 0)
		return;
	for (; at < sizeof(word) - 1 && state[at]; at++)
		word[at] = (char)(state[at] >= 'A' && state[at] <= 'Z' ? state[at] + 32
								       : state[at]);
	word[at] = '\0';
	table_put(table, RUN_STATE, word);
}

static void run_put_row(
	struct table *table, const struct cluster_job *job, int64_t now_ms)
{
	struct view_holder holder;

	cluster_view_holder(job, 100, now_ms, &holder);
	table_row(table);
	show_put_id(table, RUN_JOB, job->id);
	table_put(table, RUN_USER, job->user);
	if (job->gpus)
		table_putf(table, RUN_GPUS, "%u", job->gpus);
	else
		table_putf(table, RUN_GPUS, "%u share%s", job->shards,
			job->shards == 1 ? "" : "s");
	table_put(table, RUN_NODES, job->node_list);
	show_put_span(table, RUN_AGE, holder.age_ms);
	show_put_left(table, RUN_LEFT, &holder);
	run_put_state(table, job->state->name);
	table_put(table, RUN_NAME, job->name);
	table_put(table, RUN_COMMAND, job->command);
}

static int show_running(
	const struct cluster *cluster, const struct table_style *style, FILE *out)
{
	struct table table = TABLE_ON(run_columns);
	size_t others = 0, shown = 0;
	int r = 0;

	for (size_t i = 0; i < cluster->jobs.count; i++) {
		const struct cluster_job *job = &cluster->jobs.list[i];

		if (job->state->phase != SLURM_RUNS)
			continue;
		if (!job->gpus && !job->shards) {
			others++;
			continue;
		}
		run_put_row(&table, job, cluster->view.real_ms);
		shown++;
	}
	if (shown || others)
		(void)fputc('\n', out);
	if (shown)
		r = show_and_release(&table, style, out);
	if (others) {
		char words[64];

		(void)snprintf(words, sizeof(words), "%zu job%s without a GPU", others,
			others == 1 ? " runs" : "s run");
		line_print(words, style, out);
	}
	return r;
}

/* --- all of it --------------------------------------------------------------------- */

int show_cluster(
	const struct cluster *cluster, const struct table_style *style, FILE *out)
{
	struct view queue = cluster->view;
	int r = show_nodes(cluster, style, out);

	if (r == 0)
		r = show_running(cluster, style, out);
	(void)fputc('\n', out);
	queue.gpuless_count = 0; /* the line above counts them: there may be thousands */
	return r == 0 ? show_waiting(&queue, NO_JOB_WAITS, style, out) : r;
}
