#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "slurm_message.h"
#include "slurm_options.h"
#include "text.h"

/* Values of an option without a letter; no letter is as high. */
enum { ROWS_BEGIN = 1000 };

static const char colons[][3] = {
	[SLURM_NO_VALUE] = "", [SLURM_VALUE] = ":", [SLURM_OPTIONAL_VALUE] = "::"
};

/* The row of what getopt_long(3) has returned. */
static size_t row_of(const struct slurm_option *table, int found)
{
	size_t row = 0;

	if (found >= ROWS_BEGIN)
		return (size_t)(found - ROWS_BEGIN);
	while (table[row].letter != found)
		row++;
	return row;
}

/* Makes the tables of getopt_long(3). */
static void prepare(
	const struct slurm_option *table, struct option *options, struct text *letters)
{
	for (size_t i = 0; table[i].name; i++) {
		char letter = table[i].letter;

		options[i] = (struct option){ .name = table[i].name,
			.has_arg = table[i].value,
			.val = letter ? letter : ROWS_BEGIN + (int)i };
		if (letter && row_of(table, letter) == i)
			text_addf(letters, "%c%s", letter, colons[table[i].value]);
	}
}

/* Whether both rows are one option with two names. */
static bool is_same(const struct slurm_option *a, const struct slurm_option *b)
{
	return a == b || (a->letter && a->letter == b->letter);
}

/*
 * Returns the only option whose name begins with the @size bytes at @name, or NULL.  To musl's
 * getopt_long(3), two names of one option are ambiguous.
 */
static const struct slurm_option *find_abbreviated(
	const struct slurm_option *table, const char *name, size_t size)
{
	const struct slurm_option *found = NULL;

	for (; table->name; table++) {
		if (strncmp(table->name, name, size) != 0)
			continue;
		if (!table->name[size])
			return table;
		if (found && !is_same(found, table))
			return NULL;
		found = found ? found : table;
	}
	return found;
}

/* Writes abbreviated options in full. */
static int complete(const struct slurm_option *table, char **argv)
{
	for (; *argv && strcmp(*argv, "--") != 0; argv++) {
		const struct slurm_option *found;
		size_t size;

		if (strncmp(*argv, "--", 2) != 0)
			continue;
		size = strcspn(*argv + 2, "=");
		found = find_abbreviated(table, *argv + 2, size);
		if (found && found->name[size] &&
			asprintf(argv, "--%s%s", found->name, *argv + 2 + size) < 0)
			return -ENOMEM;
	}
	return 0;
}

static void read_variables(const struct slurm_option *table, const char **values)
{
	for (size_t i = 0; table[i].name; i++) {
		const char *value = table[i].variable ? getenv(table[i].variable) : NULL;

		if (value && *value && !values[i])
			values[i] = value;
	}
}

int slurm_options_read(const struct slurm_option *table, char **argv, const char **values,
	char ***ret_rest)
{
	struct option options[SLURM_OPTIONS_MAX + 1] = { { .name = NULL } };
	char spec[3 * SLURM_OPTIONS_MAX + 1];
	struct text letters = TEXT_ON(spec);
	const char *program = text_base_name(argv[0]);
	int count = 0, found;

	prepare(table, options, &letters);
	if (complete(table, argv + 1) < 0)
		return -ENOMEM;
	while (argv[count])
		count++;
	argv[0] = (char *)(uintptr_t)program; /* as getopt_long(3) names it */
	optind = 0;
	while ((found = getopt_long(count, argv, spec, options, NULL)) != -1) {
		const struct slurm_option *row;

		if (found == '?') {
			slurm_line("Try \"%s --help\" for more information", program);
			return -EINVAL;
		}
		row = &table[row_of(table, found)];
		if (row->instead) {
			slurm_error("--%s: %s", row->name, row->instead);
			return -EINVAL;
		}
		values[row - table] = optarg ? optarg : "";
	}
	read_variables(table, values);
	*ret_rest = argv + optind;
	return 0;
}

const char *slurm_options_value(
	const struct slurm_option *table, const char *const *values, const char *name)
{
	size_t row = 0;

	while (strcmp(table[row].name, name) != 0)
		row++;
	return values[row];
}
