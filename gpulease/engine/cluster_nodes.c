#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cluster_nodes.h"
#include "diag.h"
#include "exitcodes.h"
#include "parse.h"
#include "slurm_ask.h"

/* The fields, in their order; what a person wrote comes last. */
enum {
	NODE_NAME,
	NODE_MARK,
	NODE_STATE,
	NODE_GRES,
	NODE_USED,
	NODE_SINCE,
	NODE_BY,
	NODE_REASON,
	NODE_FIELDS,
};

static const char *const names[NODE_FIELDS] = {
	[NODE_NAME] = "NodeList", /* NodeHost would be the name of the host */
	[NODE_STATE] = "StateLong",
	[NODE_GRES] = "Gres",
	[NODE_USED] = "GresUsed",
	[NODE_SINCE] = "Timestamp",
	[NODE_BY] = "User",
	[NODE_REASON] = "Reason",
};

/* --- states ------------------------------------------------------------------------ */

/* Slurm's words; others are of nodes that work, or that are started when a job needs them. */
static const struct {
	const char *word;
	enum node_phase phase;
} states[] = {
	{ "down", NODE_DOWN },
	{ "error", NODE_DOWN },
	{ "unknown", NODE_DOWN },
	{ "inval", NODE_DOWN },
	{ "future", NODE_DOWN },
	{ "drain", NODE_PAUSED },
	{ "drained", NODE_PAUSED },
	{ "draining", NODE_PAUSED },
	{ "fail", NODE_PAUSED },
	{ "failing", NODE_PAUSED },
	{ "maint", NODE_PAUSED },
	{ "reboot", NODE_PAUSED },
	{ "rebooting", NODE_PAUSED },
	{ "reboot_issued", NODE_PAUSED },
	{ "reboot_requested", NODE_PAUSED },
};

/* The signs behind a word: `*` does not answer, `$` maintenance, `^` is being rebooted. */
static void read_state(const char *text, struct cluster_node *node)
{
	size_t size = strcspn(text, "*~#!%$@^-+"), at;

	for (at = 0; at < size && at < sizeof(node->state) - 1; at++)
		node->state[at] = (char)tolower((unsigned char)text[at]);
	node->state[at] = '\0';
	node->phase = NODE_WORKS;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (strcmp(states[i].word, node->state) == 0)
			node->phase = states[i].phase;
	if (strchr(text + size, '*'))
		node->phase = NODE_DOWN;
	else if (strpbrk(text + size, "$^") && node->phase == NODE_WORKS)
		node->phase = NODE_PAUSED;
	if (strchr(text + size, '*') && strcmp(node->state, "down") != 0)
		text_copy(node->state, sizeof(node->state), "not responding");
	else if (strchr(text + size, '$') && node->phase == NODE_PAUSED)
		text_copy(node->state, sizeof(node->state), "in maintenance");
}

/* --- one node ---------------------------------------------------------------------- */

static void read_gpus(const char *list, struct cluster_node *node)
{
	struct gres gres;

	while (gres_next(&list, &gres)) {
		unsigned room = GPUSET_MAX - node->gpus;
		unsigned count = gres.count < room ? gres.count : room;

		if (gres.is_shard) {
			node->shards += gres.count;
			continue;
		}
		if (node->type_count < NODE_TYPES_MAX) {
			struct node_type *type = &node->types[node->type_count++];

			text_copy(type->name, sizeof(type->name), gres.type);
			type->count = count;
		}
		node->gpus += count;
	}
}

/* Reads which GPUs are in use.  Without indices, the first ones are taken to be. */
static void read_use(const char *list, struct cluster_node *node)
{
	struct gres gres;

	while (gres_next(&list, &gres)) {
		struct gpuset indices = gres_indices(gres.detail);
		bool has_indices = gres.detail && strncmp(gres.detail, "IDX:", 4) == 0;
		unsigned count = 0;

		if (gres.is_shard) {
			node->shared = gpuset_or(&node->shared, &indices);
			if (gres.detail && is_digit(gres.detail[0]))
				text_copy(node->shard_use, sizeof(node->shard_use),
					gres.detail);
			continue;
		}
		for (unsigned i = 0; i < node->gpus && count < gres.count && !has_indices;
			i++)
			if (!gpuset_has(&node->used, i)) {
				gpuset_add(&indices, i);
				count++;
			}
		node->used = gpuset_or(&node->used, &indices);
	}
	for (unsigned i = 0; i < node->gpus; i++) {
		unsigned used, all;

		if (gres_shards_of(node->shard_use, i, &used, &all) && used)
			gpuset_add(&node->shared, i);
	}
	node->shared = gpuset_minus(&node->shared, &node->used);
}

static void copy_known(char *out, size_t size, const char *field)
{
	static const char *const nothing[] = { "none", "(null)", "N/A", "Unknown",
		"Not responding" };
	bool is_known = true;

	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++)
		is_known &= strcmp(field, nothing[i]) != 0;
	text_copy(out, size, is_known ? field : "");
}

static void read_node(char **fields, struct cluster_node *node)
{
	uint64_t since;

	*node = (struct cluster_node){ .gpus = 0 };
	text_copy(node->name, sizeof(node->name), fields[NODE_NAME]);
	read_state(fields[NODE_STATE], node);
	read_gpus(fields[NODE_GRES], node);
	read_use(fields[NODE_USED], node);
	copy_known(node->reason, sizeof(node->reason), fields[NODE_REASON]);
	copy_known(node->by, sizeof(node->by), fields[NODE_BY]);
	if (parse_u64(fields[NODE_SINCE], UINT64_C(1) << 40, &since, NULL) == 0)
		node->since_s = (int64_t)since;
}

/* --- all nodes --------------------------------------------------------------------- */

static const struct cluster_node *sorted_list; /* for qsort() */

/* A node that is in several partitions has a line for each of them; the first one comes first. */
static int compare_names(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int order = strcmp(sorted_list[x].name, sorted_list[y].name);

	return order ? order : (x > y) - (x < y);
}

static int sort_by_name(struct cluster_nodes *nodes)
{
	free(nodes->by_name);
	nodes->by_name = calloc(nodes->count + 1, sizeof(*nodes->by_name));
	if (!nodes->by_name)
		return -ENOMEM;
	for (size_t i = 0; i < nodes->count; i++)
		nodes->by_name[i] = i;
	sorted_list = nodes->list;
	if (nodes->count)
		qsort(nodes->by_name, nodes->count, sizeof(*nodes->by_name),
			compare_names);
	return 0;
}

/* Removes the further lines of a node, of which ->by_name has the first one first. */
static void remove_doubles(struct cluster_nodes *nodes)
{
	size_t count = 0;

	for (size_t i = 1; i < nodes->count; i++)
		if (strcmp(nodes->list[nodes->by_name[i]].name,
			    nodes->list[nodes->by_name[i - 1]].name) == 0)
			nodes->list[nodes->by_name[i]].first = SIZE_MAX;
	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->list[i].first != SIZE_MAX)
			nodes->list[count++] = nodes->list[i];
	nodes->count = count;
}

int cluster_nodes_read(char *text, const char *mark, struct cluster_nodes *ret)
{
	char *fields[NODE_FIELDS];
	int count, r;

	while ((count = slurm_next_line(&text, fields, NODE_FIELDS)) >= 0) {
		struct cluster_node *list;

		if (count <= NODE_BY || strcmp(fields[NODE_MARK], mark) != 0 ||
			!fields[NODE_NAME][0] || ret->count == NODES_MAX)
			continue;
		list = array_grow(ret->list, sizeof(*list), ret->count, &ret->room);
		if (!list)
			return -ENOMEM;
		ret->list = list;
		read_node(fields, &list[ret->count++]);
	}
	r = sort_by_name(ret);
	if (r < 0)
		return r;
	remove_doubles(ret);
	for (size_t i = 0; i < ret->count; i++) {
		ret->list[i].first = ret->gpus;
		ret->gpus += ret->list[i].gpus;
	}
	return sort_by_name(ret);
}

int cluster_nodes_ask(struct cluster_nodes *ret)
{
	struct slurm_mark mark = slurm_mark();
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	int r;

	*ret = CLUSTER_NODES_NONE;
	slurm_words_add(&words, "sinfo");
	slurm_words_add(&words, "--all");
	slurm_words_add(&words, "-h");
	slurm_words_add(&words, "-N");
	slurm_words_add_fields(&words, names, NODE_FIELDS, &mark);
	r = slurm_ask_well(&words, -1, &answer);
	if (r != 0)
		return r;
	if (answer.text && cluster_nodes_read(answer.text, mark.text, ret) < 0) {
		diag("%s", strerror(ENOMEM));
		r = EXIT_MISUSE;
	}
	answer_release(&answer);
	if (r != 0)
		cluster_nodes_release(ret);
	return r;
}

/* --- what callers ask -------------------------------------------------------------- */

struct cluster_node *cluster_nodes_find(
	const struct cluster_nodes *nodes, const char *name)
{
	size_t low = 0, high = nodes->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct cluster_node *node = &nodes->list[nodes->by_name[middle]];
		int order = strcmp(node->name, name);

		if (order == 0)
			return node;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const char *cluster_node_type(const struct cluster_node *node, unsigned index)
{
	for (size_t i = 0; i < node->type_count; i++) {
		if (index < node->types[i].count)
			return node->types[i].name;
		index -= node->types[i].count;
	}
	return "";
}

void cluster_node_explain(const struct cluster_node *node, struct text *out)
{
	if (node->phase == NODE_WORKS)
		return;
	text_addf(out, "is on node %s, which is %s", node->name, node->state);
	if (node->reason[0])
		text_addf(out, ": %s", node->reason);
	if (node->reason[0] && node->by[0])
		text_addf(out, " (%s)", node->by);
}

void cluster_nodes_release(struct cluster_nodes *nodes)
{
	free(nodes->list);
	free(nodes->by_name);
	*nodes = CLUSTER_NODES_NONE;
}
