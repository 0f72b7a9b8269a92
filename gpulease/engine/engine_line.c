#include <errno.h>
#include <stdlib.h>

#include "command_line.h"
#include "engine_line.h"
#include "engine_options.h"

/* --- the first reading ---------------------------------------------------------------- */

/* Returns the name of the value of @def on a cluster; NULL: it takes none. */
static const char *metavar_of(
	const struct option_def *def, const struct engine_option *option)
{
	if (!option || !option->takes)
		return def->metavar;
	return option->takes == '-' ? NULL : option->takes == '?' ? "[VALUE]" : "VALUE";
}

/* Whether the parser handles @def by what it does, not by its value. */
static bool is_word_of_parser(
	const struct option_def *def, const struct engine_option *option)
{
	bool is_passed = option && option->action == ENGINE_STEP;

	return def->kind == OPTION_VERB || def->kind == OPTION_COMMAND ||
	       (def->kind == OPTION_STOP && !is_passed);
}

/* A table with the same rows, each of which keeps its text in the values of the line. */
static void make_raw_table(struct option_def table[OPTIONS_MAX])
{
	for (size_t i = 0; option_table[i].kind; i++) {
		const struct engine_option *option = engine_option_find(&option_table[i]);
		struct option_def *def = &table[i];

		*def = option_table[i];
		def->metavar = metavar_of(def, option);
		def->offset = (unsigned short)(i * sizeof(char *));
		if (!is_word_of_parser(def, option))
			def->kind = def->metavar ? OPTION_TEXT : OPTION_FLAG;
	}
}

/* Copies the list of words, because the parser moves them. */
static char **copy_words(char **argv)
{
	size_t count = 0;
	char **copy;

	while (argv[count])
		count++;
	copy = calloc(count + 1, sizeof(*copy));
	if (copy)
		memcpy(copy, argv, count * sizeof(*copy));
	return copy;
}

int engine_line_scan(char **argv, struct engine_line *ret, struct why *why)
{
	static struct option_def table[OPTIONS_MAX];
	char **words = copy_words(argv);
	int r;

	if (!words)
		return -ENOMEM;
	option_table_make();
	make_raw_table(table);
	memset(ret->values, 0, sizeof(ret->values));
	r = options_parse(table, words, ret->values, &ret->given, why);
	ret->given.rest = NULL; /* it was in the copy */
	free(words);
	for (size_t i = 0; r == 0 && option_table[i].kind; i++)
		if (!table[i].metavar) /* a flag, not a text */
			ret->values[i] = NULL;
	return r;
}

/* --- the second reading --------------------------------------------------------------- */

static bool is_skipped(const struct engine_option *option)
{
	return option && (option->action != ENGINE_SELF || option->is_raw);
}

/*
 * Whether a jobs file can have the option for all its lines: a line is a job.  Each job has a log
 * of its own, no terminal, and its dependencies from its line.
 */
static bool is_for_lines(const struct engine_option *option)
{
	static const char *const of_one_job[] = { "output", "error", "input",
		"dependency", "jobid", "pty" };

	for (size_t i = 0; i < ARRAY_SIZE(of_one_job); i++)
		if (strcmp(option->name, of_one_job[i]) == 0)
			return false;
	return option->action == ENGINE_JOB || option->action == ENGINE_STEP ||
	       option->is_raw;
}

/* Has command_line_parse() accept, and skip, what it need not read. */
static void skip_in_table(void)
{
	for (struct option_def *def = option_table; def->kind; def++) {
		const struct engine_option *option = engine_option_find(def);

		if (option && is_for_lines(option))
			def->verbs |= VERB_BIT(VERB_BATCH);
		if (!is_skipped(option) || is_word_of_parser(def, option))
			continue;
		def->metavar = metavar_of(def, option);
		def->kind = OPTION_NOTHING;
		def->offset = 0;
	}
}

static struct option_spelling spelling_of(const struct engine_line *line, size_t row)
{
	return option_spell(&option_table[row], line->given.use[row].by_letter);
}

static int check_refused(const struct engine_line *line, struct why *why)
{
	for (size_t i = 0; option_table[i].kind; i++) {
		const struct engine_option *option = engine_option_find(&option_table[i]);

		if (!line->given.use[i].times || !option ||
			option->action != ENGINE_REFUSE)
			continue;
		why_set(why, "%s: %s", spelling_of(line, i).text, option->text);
		return -EINVAL;
	}
	return 0;
}

int engine_line_read(char **argv, struct engine_line *ret, struct why *why)
{
	int r = engine_line_scan(argv, ret, why);

	if (r == 0)
		r = check_refused(ret, why);
	if (r < 0)
		return r;
	skip_in_table();
	return command_line_parse(argv, &ret->settings, why);
}

/* --- what was given -------------------------------------------------------------------- */

static size_t find_row(const char *name)
{
	const struct option_def *def = options_find(option_table, name, strlen(name));

	if (!def)
		def = options_find_letter(option_table, *name);
	return (size_t)(def - option_table);
}

bool engine_line_has(const struct engine_line *line, const char *name)
{
	return line->given.use[find_row(name)].times;
}

const char *engine_line_value(const struct engine_line *line, const char *name)
{
	return line->values[find_row(name)];
}
