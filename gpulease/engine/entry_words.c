#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine_options.h"
#include "entry_words.h"
#include "option_table.h"
#include "parse.h"
#include "setup.h"

/* What gpulease does itself for a job of a batch, on its node or when it submits the job. */
static const char *const of_jobs[] = { "time", "grace", "model", "signal", "priority",
	"begin", "setup", "conda", "inject-style", "chdir", "unbuffered", "export",
	"gres", "gpus-per-node", "gpus-per-task", "gpus", "n", "verbose", "config" };

/* The options that say how many GPUs a job gets; beside one of them -n counts tasks. */
static const char *const of_gpus[] = { "gpus", "gres", "gpus-per-node", "gpus-per-task",
	"ntasks-per-gpu", "gpus-per-socket" };

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static void put_word(FILE *out, const char *word)
{
	(void)fwrite(word, 1, strlen(word) + 1, out);
}

/* Whether the option goes on to each job of the batch. */
static bool is_of_jobs(const struct engine_option *option)
{
	if (option->action == ENGINE_SELF)
		return is_one_of(option->name, of_jobs, ARRAY_SIZE(of_jobs));
	return option->action == ENGINE_JOB || option->action == ENGINE_STEP;
}

/* Whether an option that counts GPUs is given, so that -n counts tasks. */
static bool has_gpu_option(const struct engine_line *batch)
{
	for (size_t i = 0; i < ARRAY_SIZE(of_gpus); i++)
		if (engine_line_has(batch, of_gpus[i]))
			return true;
	return false;
}

/* Whether an attribute of the line stands in the place of the option. */
static bool is_replaced(
	const struct engine_line *batch, const struct batch_line *line, const char *name)
{
	static const struct {
		char option[9];
		unsigned attribute;
	} others[] = { { "time", BATCH_TIMEOUT }, { "priority", BATCH_PRIORITY },
		{ "conda", BATCH_CONDA }, { "setup", BATCH_SETUP } };
	unsigned given = line->attributes.given;

	if (given & 1u << BATCH_GPUS && is_one_of(name, of_gpus, ARRAY_SIZE(of_gpus)))
		return true;
	if (strcmp(name, "n") == 0)
		return given & 1u << BATCH_GPUS && !has_gpu_option(batch);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (strcmp(name, others[i].option) == 0)
			return given & 1u << others[i].attribute;
	return false;
}

/* Returns the long name for the option @name; -n counts GPUs or, beside a GPU option, tasks. */
static const char *name_of(const struct engine_line *batch, const char *name)
{
	if (strcmp(name, "n") != 0)
		return name;
	return has_gpu_option(batch) ? "ntasks" : "gpus";
}

static void put_options(
	const struct engine_line *batch, const struct batch_line *line, FILE *out)
{
	for (size_t i = 0; option_table[i].kind; i++) {
		const struct engine_option *option = engine_option_find(&option_table[i]);
		const char *value = batch->values[i];

		if (!batch->given.use[i].times || !option || !is_of_jobs(option) ||
			is_replaced(batch, line, option->name))
			continue;
		/* -n, where it counts tasks, must not be taken for GPUs */
		(void)fprintf(out, "--%s%s%s%c", name_of(batch, option->name),
			value ? "=" : "", value ? value : "", '\0');
	}
}

/* Returns the type of --gpus TYPE:N or -n TYPE:N; its size is 0 if none is given. */
static int type_size(const struct engine_line *batch, const char **ret_type)
{
	const char *value = engine_line_value(batch, "gpus");
	const char *colon;

	if (!value)
		value = engine_line_value(batch, "n");
	colon = value ? strchr(value, ':') : NULL;
	*ret_type = value;
	return colon ? (int)(colon - value) : 0;
}

/* The GPUs of the line; a type that the command line names stays. */
static void put_gpus(
	const struct engine_line *batch, const struct batch_attributes *said, FILE *out)
{
	const char *type;
	int size = type_size(batch, &type);

	if (said->share_percent)
		(void)fprintf(out, "--gpus=0.%02u%c", said->share_percent, '\0');
	else if (said->gpus && size)
		(void)fprintf(out, "--gpus=%.*s:%u%c", size, type, said->gpus, '\0');
	else
		(void)fprintf(out, "--gpus=%u%c", said->gpus, '\0');
}

static void put_attributes(const struct engine_line *batch, const struct batch_line *line,
	const char *name, FILE *out)
{
	const struct batch_attributes *said = &line->attributes;
	char span[DURATION_SIZE];

	if (said->given & 1u << BATCH_GPUS)
		put_gpus(batch, said, out);
	if (said->given & 1u << BATCH_TIMEOUT) {
		format_exact_duration(said->limit_ms, span);
		(void)fprintf(out, "--time=%s", span);
		(void)putc('\0', out);
	}
	/* the runner has waited for those of higher priority; to Slurm all are equal or less */
	if (said->given & 1u << BATCH_PRIORITY && said->priority < 0) {
		(void)fprintf(out, "--priority=%lld", (long long)said->priority);
		(void)putc('\0', out);
	}
	if (said->given & 1u << BATCH_CONDA)
		(void)fprintf(out, "--conda=%s%c", said->conda, '\0');
	if (said->given & 1u << BATCH_SETUP)
		(void)fprintf(out, "--setup=%s%c", said->setup, '\0');
	(void)fprintf(out, "--name=%s%c",
		said->given & 1u << BATCH_NAME ? said->name : name, '\0');
}

struct entry_words entry_words_make(
	const struct engine_line *batch, const struct batch_line *line, const char *name)
{
	struct entry_words words = { .at = NULL };
	FILE *out = open_memstream(&words.at, &words.size);

	if (!out)
		return words;
	put_word(out, "gpulease");
	put_word(out, "--submit");
	put_options(batch, line, out);
	put_attributes(batch, line, name, out);
	put_word(out, "--");
	put_word(out, "/bin/sh");
	put_word(out, "-c");
	put_word(out, line->command);
	if (fclose(out) == 0)
		return words;
	free(words.at);
	return (struct entry_words){ .at = NULL };
}

int entry_words_read(
	const struct entry_words *words, struct engine_line *ret, struct why *why)
{
	size_t count = 0;
	char **argv;
	int r;

	for (size_t i = 0; i < words->size; i++)
		count += !words->at[i];
	argv = calloc(count + 1, sizeof(*argv));
	if (!argv || count < 4)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < words->size; i += strlen(words->at + i) + 1)
		argv[count++] = words->at + i;
	r = engine_line_read(argv, ret, why);
	if (r < 0)
		return r;
	/* the shell that runs the set-up also runs the line */
	ret->settings.environment.line = argv[count - 1];
	if (setup_is_wanted(&ret->settings.environment))
		ret->settings.environment.command += 2;
	return 0;
}
