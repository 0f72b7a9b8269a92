#include <errno.h>
#include <strings.h>

#include "cluster_gpus.h"
#include "model_name.h"
#include "parse.h"
#include "slurm_ask.h"

/* --- what sinfo prints --------------------------------------------------------------------- */

static void add_type(struct cluster_gpus *gpus, const char *name, size_t size)
{
	char *type;

	if (!size || size >= MODEL_SIZE || gpus->type_count == CLUSTER_TYPES_MAX)
		return;
	type = gpus->types[gpus->type_count];
	memcpy(type, name, size);
	type[size] = '\0';
	for (unsigned i = 0; i < gpus->type_count; i++)
		if (strcmp(gpus->types[i], type) == 0)
			return;
	gpus->type_count++;
}

/* Reads the number at the end of the @size bytes at @item; 0: there is none. */
static unsigned read_count(const char *item, size_t size)
{
	const char *at = item + size;
	unsigned count = 0;

	while (at > item && is_digit(at[-1]))
		at--;
	for (; at < item + size; at++)
		count = count * 10 + (unsigned)(*at - '0');
	return count;
}

/*
 * Reads NAME[:TYPE]:COUNT, @size bytes at @item, and adds to the counts of GPUs and of shards of
 * one node.
 */
static void read_item(const char *item, size_t size, struct cluster_gpus *gpus,
	unsigned *node_gpus, unsigned *node_shards)
{
	const char *type = memchr(item, ':', size), *count;

	if (!type)
		return;
	type++;
	count = memrchr(item, ':', size);
	if (strncmp(item, "gpu:", 4) == 0) {
		*node_gpus += read_count(item, size);
		if (count > type)
			add_type(gpus, type, (size_t)(count - type));
	} else if (strncmp(item, "shard:", 6) == 0) {
		*node_shards += read_count(item, size);
	}
}

/* Reads the line of a kind of node, up to @end. */
static void read_node(const char *line, const char *end, struct cluster_gpus *gpus)
{
	unsigned node_gpus = 0, node_shards = 0;

	while (line < end) {
		size_t size = strcspn(line, ",(\n");
		const char *item = line;

		line += size;
		if (*line == '(') /* the sockets: "(S:0-1,4)" */
			line += strcspn(line, ")\n");
		line += strcspn(line, ",\n");
		if (line < end)
			line++;
		read_item(item, size, gpus, &node_gpus, &node_shards);
	}
	if (node_gpus > gpus->most)
		gpus->most = node_gpus;
	if (node_gpus && node_shards / node_gpus > gpus->shards)
		gpus->shards = node_shards / node_gpus;
}

void cluster_gpus_read(const char *text, struct cluster_gpus *ret)
{
	memset(ret, 0, sizeof(*ret));
	while (*text) {
		const char *end = text + strcspn(text, "\n");

		read_node(text, end, ret);
		text = *end ? end + 1 : end;
	}
}

int cluster_gpus_ask(struct cluster_gpus *ret)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer;
	int r;

	slurm_words_add(&words, "sinfo");
	slurm_words_add(&words, "-h");
	slurm_words_add(&words, "-o");
	slurm_words_add(&words, "%G");
	r = slurm_ask_well(&words, -1, &answer);
	if (r != 0)
		return r;
	cluster_gpus_read(answer.text ? answer.text : "", ret);
	answer_release(&answer);
	return 0;
}

/* --- the type that is meant ---------------------------------------------------------------- */

static bool is_named(const char *type, const char *wish)
{
	return strcasecmp(type, wish) == 0;
}

static bool is_in_wish(const char *type, const char *wish)
{
	return model_name_matches(wish, type);
}

/* Appends the types for which @matches; NULL: all. */
static void list_types(const struct cluster_gpus *gpus, const char *wish,
	bool (*matches)(const char *type, const char *wish), struct text *out)
{
	for (unsigned i = 0; i < gpus->type_count; i++)
		if (!matches || matches(gpus->types[i], wish))
			text_addf(out, "%s%s", out->used ? ", " : "", gpus->types[i]);
}

static int refuse_unknown(
	const struct cluster_gpus *gpus, const char *wish, struct why *why)
{
	char list[160];
	struct text text = TEXT_ON(list);

	list_types(gpus, wish, NULL, &text);
	if (text.used)
		why_set(why, "the cluster has no GPU of the type '%s'; its types are %s",
			quote(wish).text, list);
	else
		why_set(why,
			"the cluster has no GPU of the type '%s': its GPUs have no type; "
			"leave it out",
			quote(wish).text);
	return -EINVAL;
}

int cluster_gpus_find(const struct cluster_gpus *gpus, const char *wish, const char **ret,
	struct why *why)
{
	static bool (*const ways[])(const char *, const char *) = { is_named,
		model_name_matches, is_in_wish };
	char list[160];
	struct text text = TEXT_ON(list);

	for (size_t way = 0; way < ARRAY_SIZE(ways); way++) {
		unsigned found = 0;

		for (unsigned i = 0; i < gpus->type_count; i++)
			if (ways[way](gpus->types[i], wish) && !found++)
				*ret = gpus->types[i];
		if (found == 1)
			return 0;
		if (!found)
			continue;
		list_types(gpus, wish, ways[way], &text);
		why_set(why, "'%s' means several types of GPU; write one of them: %s",
			quote(wish).text, list);
		return -EINVAL;
	}
	return refuse_unknown(gpus, wish, why);
}
