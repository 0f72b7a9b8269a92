#include <errno.h>
#include <strings.h>

#include "gpu_words.h"
#include "parse.h"
#include "parse_gpus.h"

/* The options of Slurm that ask for GPUs as `[TYPE:]N[,...]`. */
static const char *const counts[] = { "gpus", "gpus-per-node", "gpus-per-task",
	"gpus-per-socket" };

/* --- what was given ------------------------------------------------------------------------ */

static bool has_any(
	const struct engine_line *line, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (engine_line_has(line, names[i]))
			return true;
	return false;
}

/* Whether -n is a number of tasks, as beside each GPU option of srun. */
static bool is_n_of_tasks(const struct engine_line *line)
{
	return has_any(line, counts, ARRAY_SIZE(counts)) ||
	       engine_line_has(line, "gres") || engine_line_has(line, "ntasks-per-gpu");
}

static bool has_tasks(const struct engine_line *line)
{
	static const char *const names[] = { "ntasks", "ntasks-per-node",
		"tasks-per-node", "ntasks-per-gpu", "ntasks-per-core",
		"ntasks-per-socket" };

	if (engine_line_has(line, "n") && is_n_of_tasks(line))
		return true;
	/* Slurm then makes as many tasks as these GPUs are enough for */
	if (engine_line_has(line, "gpus-per-task") && engine_line_has(line, "gpus"))
		return true;
	return has_any(line, names, ARRAY_SIZE(names));
}

static bool has_nodes(const struct engine_line *line)
{
	const char *list = engine_line_value(line, "nodelist");

	return engine_line_has(line, "nodes") || engine_line_has(line, "nodefile") ||
	       (list && strpbrk(list, ",[/"));
}

bool gpu_words_is_one_task(const struct engine_line *line)
{
	return !has_tasks(line) && !has_nodes(line);
}

bool gpu_words_need_types(const struct engine_line *line)
{
	const char *n = engine_line_value(line, "n"), *gres;

	if (engine_line_has(line, "model") ||
		(n && !is_n_of_tasks(line) && strchr(n, '.')))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		const char *value = engine_line_value(line, counts[i]);

		if (value && strpbrk(value, ":."))
			return true;
	}
	gres = engine_line_value(line, "gres");
	return gres && strpbrk(gres, ":.");
}

/* --- how many of one node ------------------------------------------------------------------ */

/* Adds up the numbers in the list @value: [TYPE:]N[,...], or NAME[:TYPE]:N of one @name. */
static unsigned add_up(const char *value, const char *name)
{
	unsigned sum = 0;

	for (size_t size; value && *value; value += size + (value[size] == ',')) {
		const char *at;
		unsigned number = 0;

		size = strcspn(value, ",");
		at = value + size;
		if (name && strncmp(value, name, strlen(name)) != 0)
			continue;
		while (at > value && is_digit(at[-1]))
			at--;
		if (at > value && at[-1] == '.') /* a part of a GPU */
			continue;
		for (; at < value + size; at++)
			number = number * 10 + (unsigned)(*at - '0');
		sum += number;
	}
	return sum;
}

unsigned gpu_words_of_node(const struct engine_line *line)
{
	/* all GPUs of the job are those of its one node */
	bool has_one_node = gpu_words_is_one_task(line);
	unsigned most = add_up(engine_line_value(line, "gres"), "gpu:");

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		bool is_of_job = strcmp(counts[i], "gpus") == 0;
		unsigned sum = add_up(engine_line_value(line, counts[i]), NULL);

		if (sum > most && (has_one_node || !is_of_job))
			most = sum;
	}
	if (is_n_of_tasks(line))
		return most;
	if (!engine_line_has(line, "n"))
		return 1;
	return has_one_node ? add_up(engine_line_value(line, "n"), NULL) : 0;
}

/* --- one wish: [TYPE:]N -------------------------------------------------------------------- */

/* A list of wishes that is read: for which option, and where its words go. */
struct wishes {
	const struct engine_line *line;
	const struct cluster_gpus *gpus;
	const char *option; /* as the user knows it: "--gpus" */
	char list[512], shards[128];
	struct text text, shard_text; /* whole GPUs; shards */
	struct why *why;
};

/* Finds the type of a wish, which has the type @text, "" for none.  *@ret is NULL for any type. */
static int find_type(struct wishes *wishes, const char *text, const char **ret)
{
	const char *model = engine_line_value(wishes->line, "model");
	struct why reason = WHY_NONE;
	int r;

	*ret = NULL;
	if (*text && model && strcasecmp(text, model) != 0) {
		why_set(wishes->why, "%s asks for '%s' and --model for '%s'; give one",
			wishes->option, quote(text).text, quote(model).text);
		return -EINVAL;
	}
	if (!*text && !model)
		return 0;
	r = cluster_gpus_find(wishes->gpus, *text ? text : model, ret, &reason);
	if (r < 0)
		why_wrap(
			wishes->why, &reason, "%s: ", *text ? wishes->option : "--model");
	return r;
}

/* Appends shards for @percent of one GPU. */
static int add_share(struct wishes *wishes, const char *type, unsigned percent)
{
	unsigned all = wishes->gpus->shards;

	if (!all) {
		why_set(wishes->why,
			"%s: a part of a GPU needs shards, and this cluster has none; ask "
			"for whole GPUs, or run several small jobs in one: gpulease "
			"--submit -- gpulease --batch FILE",
			wishes->option);
		return -EINVAL;
	}
	text_addf(&wishes->shard_text, "shard:%s%s%u", type ? type : "", type ? ":" : "",
		(percent * all + 99) / 100);
	return 0;
}

/* Reads @count, and appends the wish in Slurm's words; @gres: gpu[:TYPE]:N. */
static int add_wish(
	struct wishes *wishes, const char *type_text, const char *count, bool gres)
{
	struct why reason = WHY_NONE;
	unsigned number, percent;
	const char *type;
	int r = parse_gpu_count(count, &number, &percent, &reason);

	if (r < 0) {
		why_wrap(wishes->why, &reason, "%s: ", wishes->option);
		return r;
	}
	r = find_type(wishes, type_text, &type);
	if (r < 0)
		return r;
	if (percent)
		return add_share(wishes, type, percent);
	if (!number)
		return 0;
	text_addf(&wishes->text, "%s%s%s%s%u", wishes->text.used ? "," : "",
		gres ? "gpu:" : "", type ? type : "", type ? ":" : "", number);
	return 0;
}

/* Reads TYPE:N, N or, in a list for --gres, TYPE. */
static int read_wish(struct wishes *wishes, char *item, bool gres)
{
	char *colon = strrchr(item, ':'), *count = colon ? colon + 1 : item;
	static char one[] = "1", none[] = "";

	if (gres && !colon && *item && !strchr("-.0123456789", *item))
		return add_wish(wishes, item, one, true);
	if (colon)
		*colon = '\0';
	if (gres && !*item)
		return add_wish(wishes, none, one, true);
	return add_wish(wishes, colon ? item : none, count, gres);
}

/* --- the options --------------------------------------------------------------------------- */

static void begin(struct wishes *wishes, const char *option)
{
	wishes->option = option;
	wishes->text = TEXT_ON(wishes->list);
	wishes->shard_text = TEXT_ON(wishes->shards);
}

/* Appends `--OPTION=LIST` if the list is not empty, and the shards, which are a --gres. */
static int finish(struct wishes *wishes, struct slurm_words *words)
{
	bool is_gres = strcmp(wishes->option, "--gres") == 0;

	if (wishes->text.cut || wishes->shard_text.cut) {
		why_set(wishes->why, "%s has too many items", wishes->option);
		return -EINVAL;
	}
	if (is_gres && wishes->shard_text.used)
		text_addf(&wishes->text, "%s%s", wishes->text.used ? "," : "",
			wishes->shards);
	if (wishes->text.used)
		slurm_words_addf(words, "%s=%s", wishes->option, wishes->list);
	if (!is_gres && wishes->shard_text.used)
		slurm_words_addf(words, "--gres=%s", wishes->shards);
	return 0;
}

/* One of counts[]: TYPE:N[,TYPE:N]. */
static int add_count(struct wishes *wishes, const char *name, struct slurm_words *words)
{
	const char *value = engine_line_value(wishes->line, name);
	char option[40], list[256], *rest = list, *item;
	int r = 0;

	if (!value)
		return 0;
	(void)snprintf(option, sizeof(option), "--%s", name);
	begin(wishes, option);
	text_copy(list, sizeof(list), value);
	while (r == 0 && (item = strsep(&rest, ",")))
		r = read_wish(wishes, item, false);
	return r < 0 ? r : finish(wishes, words);
}

/* --gres: other resources than GPUs are passed as they are. */
static int add_gres(struct wishes *wishes, struct slurm_words *words)
{
	const char *value = engine_line_value(wishes->line, "gres");
	char list[256], *rest = list, *item;
	int r = 0;

	if (!value)
		return 0;
	begin(wishes, "--gres");
	text_copy(list, sizeof(list), value);
	while (r == 0 && (item = strsep(&rest, ","))) {
		size_t size = strcspn(item, ":");

		if (size == 3 && memcmp(item, "gpu", size) == 0)
			r = read_wish(wishes, item + size + (item[size] == ':'), true);
		else
			text_addf(&wishes->text, "%s%s", wishes->text.used ? "," : "",
				item);
	}
	return r < 0 ? r : finish(wishes, words);
}

static int add_gpus(struct wishes *wishes, struct slurm_words *words)
{
	const char *n = engine_line_value(wishes->line, "n");
	char one[] = "1", none[] = "";
	int r = 0;

	/* a step has all GPUs of its job */
	if (!n && !engine_line_has(wishes->line, "model") &&
		engine_line_has(wishes->line, "jobid") && !is_n_of_tasks(wishes->line))
		return 0;
	/* Slurm refuses fewer GPUs than nodes, so each node gives one */
	if (!n && has_nodes(wishes->line) && !is_n_of_tasks(wishes->line)) {
		begin(wishes, "--gpus-per-node");
		r = add_wish(wishes, none, one, false);
		return r < 0 ? r : finish(wishes, words);
	}
	if (!is_n_of_tasks(wishes->line)) {
		begin(wishes, "--gpus");
		wishes->option = n ? "-n" : "--gpus"; /* in a message */
		r = add_wish(wishes, none, n ? n : one, false);
		wishes->option = "--gpus";
		return r < 0 ? r : finish(wishes, words);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(counts); i++)
		r = add_count(wishes, counts[i], words);
	return r < 0 ? r : add_gres(wishes, words);
}

int gpu_words_add(const struct engine_line *line, const struct cluster_gpus *gpus,
	struct slurm_words *words, struct why *why)
{
	struct wishes wishes = { .line = line, .gpus = gpus, .why = why };
	int r = add_gpus(&wishes, words);

	if (r < 0)
		return r;
	if (engine_line_has(line, "n") && is_n_of_tasks(line))
		slurm_words_addf(words, "--ntasks=%s", engine_line_value(line, "n"));
	if (gpu_words_is_one_task(line)) {
		slurm_words_add(words, "--nodes=1");
		slurm_words_add(words, "--ntasks=1");
	}
	return 0;
}
