#include "engine_help.h"
#include "engine_options.h"

enum { WIDTH = 78, COLUMN = 28 }; /* of a line, and before the explanations */

/* What stands before the text of an entry. */
static const char *const before[] = {
	[ENGINE_JOB] = "passed to srun or sbatch",
	[ENGINE_STEP] = "passed to srun",
	[ENGINE_SELF] = "",
	[ENGINE_REFUSE] = "refused: ",
	[ENGINE_IGNORE] = "no effect: ",
};

static bool is_passed(const struct engine_option *option)
{
	return option->action == ENGINE_JOB || option->action == ENGINE_STEP;
}

static bool is_same_fate(const struct engine_option *a, const struct engine_option *b)
{
	if (a->action != b->action || !a->text != !b->text)
		return false;
	return !a->text || strcmp(a->text, b->text) == 0;
}

void engine_help_print_title(FILE *out)
{
	(void)fprintf(out,
		"With --engine slurm, GPULEASE_ENGINE=slurm or the line `engine = slurm` of\n"
		"the configuration, gpulease runs jobs on a Slurm cluster, by srun and sbatch.\n"
		"This is what becomes of each option; man gpulease-slurm has more.\n");
}

/* --- lines ----------------------------------------------------------------------------- */

/* Prints @word at *@column, or on a new line that begins with @indent blanks. */
static void print_word(
	FILE *out, const char *word, size_t size, size_t indent, size_t *column)
{
	if (*column + 1 + size > WIDTH) {
		(void)fprintf(out, "\n%*s", (int)indent, "");
		*column = indent;
	} else if (*column > indent) {
		(void)fputc(' ', out);
		++*column;
	}
	(void)fprintf(out, "%.*s", (int)size, word);
	*column += size;
}

static void print_words(FILE *out, const char *text, size_t indent, size_t *column)
{
	while (*text) {
		size_t size = strcspn(text, " ");

		print_word(out, text, size, indent, column);
		text += size + (text[size] == ' ');
	}
}

/*
 * Prints the names of the options of @group that share the fate of @first.  Returns the column
 * behind them; WIDTH if they take several lines.
 */
static size_t print_names(unsigned group, const struct option_def *first, FILE *out)
{
	const struct engine_option *option = engine_option_find(first);
	size_t column = 2, all = 2;

	(void)fprintf(out, "  ");
	for (const struct option_def *def = first, *next; def; def = next) {
		char name[64];
		struct text text = TEXT_ON(name);

		for (next = def + 1; next->kind; next++)
			if (next->group == group &&
				is_same_fate(engine_option_find(next), option))
				break;
		if (!next->kind)
			next = NULL;
		if (def->letter)
			text_addf(&text, "-%c%s", def->letter, def->name ? "/" : "");
		if (def->name)
			text_addf(&text, "--%s", def->name);
		if (next)
			text_add(&text, ",");
		print_word(out, name, strlen(name), 2, &column);
		all += strlen(name) + 1;
	}
	return all > WIDTH ? WIDTH : column;
}

static void print_fate(const struct engine_option *option, size_t column, FILE *out)
{
	char line[256];
	struct text text = TEXT_ON(line);

	text_add(&text, before[option->action]);
	if (is_passed(option) && option->text)
		text_addf(&text, " as --%s", option->text);
	else if (option->text)
		text_add(&text, option->text);
	if (column + 2 > COLUMN) {
		(void)fputc('\n', out);
		column = 0;
	}
	(void)fprintf(out, "%*s", (int)(COLUMN - column), "");
	column = COLUMN;
	print_words(out, line, COLUMN, &column);
	(void)fputc('\n', out);
}

/* Whether an option above @def in its group has the same fate. */
static bool is_named_above(
	const struct option_def *def, const struct engine_option *option)
{
	for (const struct option_def *above = option_table; above < def; above++)
		if (above->group == def->group &&
			is_same_fate(engine_option_find(above), option))
			return true;
	return false;
}

void engine_help_print_group(unsigned group, const char *title, FILE *out)
{
	(void)fprintf(out, "\n%s:\n", title);
	for (const struct option_def *def = option_table; def->kind; def++) {
		const struct engine_option *option = engine_option_find(def);

		if (def->group == group && !is_named_above(def, option))
			print_fate(option, print_names(group, def, out), out);
	}
}

/* --- fields for checks ----------------------------------------------------------------- */

static const char *takes_there(
	const struct option_def *def, const struct engine_option *option)
{
	static const char *const names[] = {
		[TAKES_NONE] = "none",
		[TAKES_OPTIONAL] = "optional",
		[TAKES_REQUIRED] = "required",
		[TAKES_OPERANDS] = "operands",
	};

	switch (option->takes) {
	case '-':
		return "none";
	case '?':
		return "optional";
	case '=':
		return "required";
	default:
		return names[option_takes(def)];
	}
}

void engine_help_print_fields(const struct option_def *def, FILE *out)
{
	static const char *const actions[] = {
		[ENGINE_JOB] = "job",
		[ENGINE_STEP] = "step",
		[ENGINE_SELF] = "self",
		[ENGINE_REFUSE] = "refuse",
		[ENGINE_IGNORE] = "ignore",
	};
	const struct engine_option *option = engine_option_find(def);

	(void)fprintf(out, "%s", actions[option->action]);
	if (is_passed(option))
		(void)fprintf(out, " --%s", option->text ? option->text : def->name);
	(void)fprintf(out, "\t%s", takes_there(def, option));
}
