#include <errno.h>

#include "batch_after.h"
#include "batch_attributes.h"
#include "parse.h"

/*
 * The lines with one name.  A line that comes after a name waits for all of them, so there is a
 * cycle of lines exactly if there is one of names.  The search is a depth-first search over names;
 * its path is kept here and not on the stack, because it may be as long as the list.
 */
struct group {
	const char *name;
	const struct batch_line *first; /* its lines; ->next of the graph links them */
	const struct batch_line *last;
	enum { GROUP_NEW, GROUP_ON_PATH, GROUP_DONE } state;
	struct group *from; /* the group before it on the path */
	/* the position of the search: a line, and in one of its lists */
	const struct batch_line *line;
	const char *at;
	bool is_second; /* ->at is in `after-ok` of the line */
};

struct graph {
	const struct batch_list *list;
	const struct batch_known *known;
	struct group *groups;
	size_t count;
	uint32_t *next;  /* for each line the index of the next with its name; 0: none */
	uint32_t *table; /* a hash table of groups: index + 1; 0: free */
	size_t mask;
	struct why *why;
	unsigned wrong_line;
};

/* --- names ------------------------------------------------------------------------- */

static uint32_t graph_hash(const char *name, size_t size)
{
	uint32_t sum = 2166136261u;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ (unsigned char)name[i]) * 16777619u;
	return sum;
}

/* Returns the entry of the group with that name, or the free one where it belongs. */
static uint32_t *graph_find(const struct graph *graph, const char *name, size_t size)
{
	size_t at = graph_hash(name, size) & graph->mask;

	for (; graph->table[at]; at = (at + 1) & graph->mask) {
		const char *other = graph->groups[graph->table[at] - 1].name;

		if (strncmp(other, name, size) == 0 && !other[size])
			break;
	}
	return &graph->table[at];
}

static void graph_add_line(struct graph *graph, const struct batch_line *line)
{
	const char *name = line->attributes.name;
	uint32_t *at = graph_find(graph, name, strlen(name));
	struct group *group;

	if (!*at) {
		graph->groups[graph->count++] = (struct group){ .name = name };
		*at = (uint32_t)graph->count;
	}
	group = &graph->groups[*at - 1];
	if (group->first)
		graph->next[group->last - graph->list->lines] =
			(uint32_t)(line - graph->list->lines);
	else
		group->first = line;
	group->last = line;
}

/* --- what a line comes after ------------------------------------------------------- */

/*
 * Takes the next name from *@list and returns its group.  Skips numbers, and names that only
 * ->known knows.  Returns NULL at the end, or for an unknown name: then it sets ->wrong_line.
 */
static struct group *graph_next_in_list(
	struct graph *graph, const struct batch_line *line, const char **list)
{
	while (*list && **list) {
		const char *item = *list;
		size_t size = strcspn(item, ",");
		uint32_t found;

		*list += size + (item[size] == ',');
		if (batch_is_job_number(item, size))
			continue;
		found = *graph_find(graph, item, size);
		if (found)
			return &graph->groups[found - 1];
		if (graph->known && graph->known->has(graph->known->arg, item, size))
			continue;
		graph->wrong_line = line->number;
		why_set(graph->why, "it comes after '%s', and no line has that name",
			quote_bytes(item, size).text);
		return NULL;
	}
	return NULL;
}

static int graph_check_names(struct graph *graph, const struct batch_line *line)
{
	const char *lists[] = { line->attributes.after, line->attributes.after_ok };

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		while (graph_next_in_list(graph, line, &lists[i]))
			;
	return graph->wrong_line ? -EINVAL : 0;
}

/* --- the search -------------------------------------------------------------------- */

static void group_begin_line(struct group *group, const struct batch_line *line)
{
	group->line = line;
	group->at = line ? line->attributes.after : NULL;
	group->is_second = false;
}

/* Returns the next group that a line of @group comes after, or NULL at the end. */
static struct group *group_next(struct graph *graph, struct group *group)
{
	while (group->line) {
		struct group *other = graph_next_in_list(graph, group->line, &group->at);
		uint32_t next = graph->next[group->line - graph->list->lines];

		if (other)
			return other;
		if (!group->is_second) {
			group->is_second = true;
			group->at = group->line->attributes.after_ok;
		} else {
			group_begin_line(group, next ? &graph->list->lines[next] : NULL);
		}
	}
	return NULL;
}

static int graph_report_cycle(
	struct graph *graph, const struct group *group, const struct group *other)
{
	graph->wrong_line = group->line->number;
	if (group == other)
		why_set(graph->why, "'%s' would come after itself",
			quote(group->name).text);
	else
		why_set(graph->why, "'%s' comes after '%s', which would come after it",
			quote(group->name).text, quote(other->name).text);
	return -EINVAL;
}

/*
 * Searches for a cycle from @group on, unless an earlier search has passed it.  Returns 0 or
 * -EINVAL.
 */
static int graph_search(struct graph *graph, struct group *group)
{
	if (group->state != GROUP_NEW)
		return 0;
	group->state = GROUP_ON_PATH;
	group_begin_line(group, group->first);
	while (group) {
		struct group *other = group_next(graph, group);

		if (!other) {
			group->state = GROUP_DONE;
			group = group->from;
		} else if (other->state == GROUP_ON_PATH) {
			return graph_report_cycle(graph, group, other);
		} else if (other->state == GROUP_NEW) {
			other->state = GROUP_ON_PATH;
			other->from = group;
			group_begin_line(other, other->first);
			group = other;
		}
	}
	return 0;
}

/* --- the check --------------------------------------------------------------------- */

static int graph_check(struct graph *graph)
{
	const struct batch_list *list = graph->list;

	for (size_t i = 0; i < list->count; i++)
		if (list->lines[i].attributes.name)
			graph_add_line(graph, &list->lines[i]);
	for (size_t i = 0; i < list->count; i++)
		if (graph_check_names(graph, &list->lines[i]) < 0)
			return -EINVAL;
	for (size_t i = 0; i < graph->count; i++)
		if (graph_search(graph, &graph->groups[i]) < 0)
			return -EINVAL;
	return 0;
}

static bool has_after(const struct batch_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->lines[i].attributes.after || list->lines[i].attributes.after_ok)
			return true;
	return false;
}

int batch_after_check(const struct batch_list *list, const struct batch_known *known,
	unsigned *ret_line, struct why *why)
{
	size_t room = 2;
	int r;

	if (!has_after(list))
		return 0;
	while (room < 2 * list->count)
		room *= 2;
	autofree struct group *groups = calloc(list->count, sizeof(*groups));
	autofree uint32_t *next = calloc(list->count, sizeof(*next));
	autofree uint32_t *table = calloc(room, sizeof(*table));
	struct graph graph = { .list = list,
		.known = known,
		.groups = groups,
		.next = next,
		.table = table,
		.mask = room - 1,
		.why = why };

	if (!groups || !next || !table) {
		why_set(why, "not enough memory");
		return -ENOMEM;
	}
	r = graph_check(&graph);
	*ret_line = graph.wrong_line;
	return r;
}
