#include <errno.h>
#include <stdlib.h>

#include "array.h"
#include "cluster_places.h"
#include "diag.h"
#include "exitcodes.h"
#include "hostlist.h"
#include "parse.h"
#include "slurm_ask.h"

/* A job that runs, for the search by its id. */
struct job_key {
	uint64_t id;
	size_t job;
};

/* What is being read. */
struct reading {
	const struct cluster_jobs *jobs;
	const struct cluster_nodes *nodes;
	struct cluster_places *places;
	struct job_key *keys;
	size_t key_count;
	size_t *marks; /* of each node: the last job, from 1, that was found to have it */
	unsigned *counts; /* of each job: the GPUs that were found */
	bool is_short_of_memory;

	/* for the callbacks of hostlist_expand() */
	size_t job;
	const char *gres; /* what the job has on these nodes */
	unsigned share;   /* how many GPUs are to be chosen on each node */
};

/* --- places ------------------------------------------------------------------------ */

static void add_place(struct reading *reading, const struct cluster_node *node,
	unsigned index, unsigned percent)
{
	struct cluster_places *places = reading->places;
	struct cluster_place *list;
	size_t gpu = node->first + index;

	if (places->taken[gpu])
		return;
	list = array_grow(places->list, sizeof(*list), places->count, &places->room);
	if (!list) {
		reading->is_short_of_memory = true;
		return;
	}
	places->list = list;
	list[places->count++] = (struct cluster_place){
		.gpu = gpu, .job = reading->job, .percent = percent
	};
	places->taken[gpu] = percent == 100;
	reading->counts[reading->job]++;
}

/* Returns which part of the GPU @index @count shards on @gpus GPUs of the node are. */
static unsigned shard_percent(const struct cluster_node *node, const struct gres *gres,
	unsigned index, unsigned gpus)
{
	unsigned all = node->gpus ? node->shards / node->gpus : 0;
	unsigned used = gpus ? gres->count / gpus : 0;
	unsigned percent;

	(void)gres_shards_of(gres->detail, index, &used, &all);
	percent = all && used <= all ? used * 100 / all : 0;
	return percent < 1 ? 1 : percent > 99 ? 99 : percent;
}

static void take_shards(
	struct reading *reading, const struct cluster_node *node, const struct gres *gres)
{
	struct gpuset indices = gres_indices(gres->detail);
	unsigned used, all;

	for (unsigned i = 0; i < node->gpus; i++)
		if (gres_shards_of(gres->detail, i, &used, &all) && used)
			gpuset_add(&indices, i);
	indices = gpuset_and(&indices, &node->shared);
	gpuset_for_each (i, &indices)
		if ((unsigned)i < node->gpus)
			add_place(reading, node, (unsigned)i,
				shard_percent(
					node, gres, (unsigned)i, gpuset_count(&indices)));
}

static void take_node(const char *name, void *context)
{
	struct reading *reading = context;
	const struct cluster_node *node = cluster_nodes_find(reading->nodes, name);
	const char *list = reading->gres;
	struct gres gres;

	if (!node || reading->marks[node - reading->nodes->list] != reading->job + 1)
		return;
	while (gres_next(&list, &gres)) {
		struct gpuset indices = gres_indices(gres.detail);

		if (gres.is_shard) {
			take_shards(reading, node, &gres);
			continue;
		}
		indices = gpuset_and(&indices, &node->used);
		gpuset_for_each (i, &indices)
			if ((unsigned)i < node->gpus)
				add_place(reading, node, (unsigned)i, 100);
	}
}

/* Chooses GPUs of a node: those in use first, else any, because sinfo was asked before squeue. */
static void choose_on_node(const char *name, void *context)
{
	struct reading *reading = context;
	const struct cluster_node *node = cluster_nodes_find(reading->nodes, name);
	unsigned wanted = reading->share;

	for (unsigned in_use = 2; node && in_use-- > 0;)
		for (unsigned i = 0; i < node->gpus && wanted; i++)
			if (gpuset_has(&node->used, i) == in_use &&
				!reading->places->taken[node->first + i]) {
				add_place(reading, node, i, 100);
				wanted--;
			}
}

/* --- lines ------------------------------------------------------------------------- */

static void mark_node(const char *name, void *context)
{
	struct reading *reading = context;
	const struct cluster_node *node = cluster_nodes_find(reading->nodes, name);

	if (node)
		reading->marks[node - reading->nodes->list] = reading->job + 1;
}

static bool is_before(const void *item, const void *key)
{
	return ((const struct job_key *)item)->id < *(const uint64_t *)key;
}

/* Returns the job that the line begins with; SIZE_MAX: none that runs. */
static size_t job_of_line(const struct reading *reading, const char *line)
{
	static const char begin[] = "JobId=";
	char number[24];
	uint64_t id;
	size_t at;

	if (strncmp(line, begin, sizeof(begin) - 1) != 0)
		return SIZE_MAX;
	text_copy(number, sizeof(number), line + sizeof(begin) - 1);
	number[strcspn(number, " ")] = '\0';
	if (parse_u64(number, UINT64_MAX, &id, NULL) < 0)
		return SIZE_MAX;
	at = array_lower_bound(reading->keys, sizeof(*reading->keys), reading->key_count,
		&id, is_before);
	return at < reading->key_count && reading->keys[at].id == id
		       ? reading->keys[at].job
		       : SIZE_MAX;
}

/* Calls @take with each node of @list; a list that was cut or is no list has none. */
static void each_node(struct reading *reading, const char *list,
	void (*take)(const char *name, void *context))
{
	size_t count;

	if (hostlist_expand(list, take, reading, &count, NULL) < 0)
		reading->gres = NULL;
}

/* Copies the word that follows @key, up to a blank.  Returns what is behind it; NULL: no @key. */
static const char *find_word(const char *line, const char *key, char *out, size_t size)
{
	const char *word = strstr(line, key);
	size_t length;

	if (!word)
		return NULL;
	word += strlen(key);
	length = strcspn(word, " ");
	(void)snprintf(out, size, "%.*s", (int)length, word);
	return word + length;
}

/* Reads each " Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:sim:2(IDX:0-1)" of the line. */
static void read_line(struct reading *reading, const char *line)
{
	static const char nodes[] = " Nodes=", gres[] = " GRES=";
	char list[1024], has[1024];

	reading->job = job_of_line(reading, line);
	if (reading->job == SIZE_MAX || !strstr(line, gres))
		return;
	each_node(reading, reading->jobs->list[reading->job].node_list, mark_node);
	while ((line = find_word(line, nodes, list, sizeof(list)))) {
		const char *next = strstr(line, nodes), *behind;

		behind = find_word(line, gres, has, sizeof(has));
		if (!behind || (next && next < behind - strlen(has)))
			continue;
		line = behind;
		reading->gres = has;
		each_node(reading, list, take_node);
	}
}

/* Chooses GPUs for the jobs of which scontrol has told nothing. */
static void choose_others(struct reading *reading)
{
	for (size_t i = 0; i < reading->key_count; i++) {
		const struct cluster_job *job =
			&reading->jobs->list[reading->keys[i].job];

		reading->job = reading->keys[i].job;
		if (reading->counts[reading->job] || !job->gpus || !job->nodes)
			continue;
		reading->share = (job->gpus + job->nodes - 1) / job->nodes;
		each_node(reading, job->node_list, choose_on_node);
	}
}

/* --- all of it --------------------------------------------------------------------- */

static int compare_keys(const void *a, const void *b)
{
	const struct job_key *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static int compare_places(const void *a, const void *b)
{
	const struct cluster_place *x = a, *y = b;

	if (x->gpu != y->gpu)
		return x->gpu < y->gpu ? -1 : 1;
	return (x->job > y->job) - (x->job < y->job);
}

static int begin(struct reading *reading)
{
	const struct cluster_jobs *jobs = reading->jobs;

	reading->keys = calloc(jobs->count + 1, sizeof(*reading->keys));
	reading->counts = calloc(jobs->count + 1, sizeof(*reading->counts));
	reading->marks = calloc(reading->nodes->count + 1, sizeof(*reading->marks));
	reading->places->taken =
		calloc(reading->nodes->gpus + 1, sizeof(*reading->places->taken));
	if (!reading->keys || !reading->counts || !reading->marks ||
		!reading->places->taken)
		return -ENOMEM;
	for (size_t i = 0; i < jobs->count; i++)
		if (jobs->list[i].state->phase == SLURM_RUNS)
			reading->keys[reading->key_count++] =
				(struct job_key){ .id = jobs->list[i].id, .job = i };
	qsort(reading->keys, reading->key_count, sizeof(*reading->keys), compare_keys);
	return 0;
}

int cluster_places_read(char *text, const struct cluster_jobs *jobs,
	const struct cluster_nodes *nodes, struct cluster_places *ret)
{
	struct reading reading = { .jobs = jobs, .nodes = nodes, .places = ret };
	int r;

	*ret = CLUSTER_PLACES_NONE;
	r = begin(&reading);
	while (r == 0 && *text) {
		char *line = text;

		text += strcspn(text, "\n");
		if (*text)
			*text++ = '\0';
		read_line(&reading, line);
	}
	if (r == 0)
		choose_others(&reading);
	free(reading.keys);
	free(reading.counts);
	free(reading.marks);
	if (r == 0 && reading.is_short_of_memory)
		r = -ENOMEM;
	if (r == 0 && ret->count)
		qsort(ret->list, ret->count, sizeof(*ret->list), compare_places);
	if (r < 0)
		cluster_places_release(ret);
	return r;
}

static bool is_any_in_use(const struct cluster_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		if (!gpuset_is_empty(&nodes->list[i].used) ||
			!gpuset_is_empty(&nodes->list[i].shared))
			return true;
	return false;
}

int cluster_places_ask(const struct cluster_jobs *jobs, const struct cluster_nodes *nodes,
	struct cluster_places *ret)
{
	struct slurm_words words = { .count = 0 };
	struct answer answer = ANSWER_NONE;
	char nothing[] = "";
	int r = 0;

	slurm_words_add(&words, "scontrol");
	slurm_words_add(&words, "-a");
	slurm_words_add(&words, "-d");
	slurm_words_add(&words, "-o");
	slurm_words_add(&words, "show");
	slurm_words_add(&words, "jobs");
	if (is_any_in_use(nodes))
		r = slurm_ask(&words, -1, SLURM_DEADLINE_MS, &answer);
	if (r != 0)
		return r;
	/* one that fails leaves the choice to choose_others() */
	if (cluster_places_read(answer.text ? answer.text : nothing, jobs, nodes, ret) <
		0) {
		diag("%s", strerror(ENOMEM));
		r = EXIT_MISUSE;
	}
	answer_release(&answer);
	return r;
}

void cluster_places_release(struct cluster_places *places)
{
	free(places->list);
	free(places->taken);
	*places = CLUSTER_PLACES_NONE;
}
