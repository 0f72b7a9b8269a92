#include <errno.h>
#include <stdio.h>

#include "parse.h"
#include "sbatch_abbreviation.h"

/* Whether the @size bytes at @given begin @name, with `_` for `-`. */
static bool begins(const char *name, const char *given, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (name[i] != (given[i] == '_' ? '-' : given[i]))
			return false;
	return true;
}

/*
 * Returns the option that @word, "--name=value" or "--name", means; NULL: none.  @names gets the
 * options that an abbreviation fits if there are several.
 */
static const struct option_def *find(
	const struct option_def *table, const char *word, struct text *names)
{
	size_t size = strcspn(word + 2, "=");
	const struct option_def *found = options_find(table, word + 2, size);
	unsigned count = 0;

	if (found)
		return found;
	for (const struct option_def *def = table; def->kind; def++) {
		if (!def->name || !begins(def->name, word + 2, size))
			continue;
		text_addf(names, "%s--%s", count++ ? ", " : "", def->name);
		found = def;
	}
	return count == 1 ? found : NULL;
}

/* Sets *@ret to the option @def with @value, "=2" or "". */
static int write_out(const struct option_def *def, const char *value, char **ret)
{
	/* the words stay, so they are kept where a search for lost memory finds them */
	static struct kept {
		struct kept *next;
		char word[];
	} * all;
	size_t size = strlen(def->name) + strlen(value) + sizeof("--");
	struct kept *kept = malloc(sizeof(*kept) + size);

	if (!kept)
		return -ENOMEM;
	(void)snprintf(kept->word, size, "--%s%s", def->name, value);
	kept->next = all;
	all = kept;
	*ret = kept->word;
	return 0;
}

/* Writes out the long option *@word.  *@ret_def is the option; NULL: none. */
static int expand(const struct option_def *table, char **word,
	const struct option_def **ret_def, struct why *why)
{
	char bytes[256] = "";
	struct text names = TEXT_ON(bytes);
	const char *value = strchr(*word, '=');
	const struct option_def *def = find(table, *word, &names);

	*ret_def = def;
	if (!def && strchr(bytes, ',')) {
		why_set(why, "option '%s' is ambiguous: %s%s",
			quote_bytes(*word, strcspn(*word, "=")).text, bytes,
			names.cut ? "..." : "");
		return -EINVAL;
	}
	return def && names.used ? write_out(def, value ? value : "", word) : 0;
}

/* Whether the last letter of @word, "-vn", needs the next word as its value. */
static bool letters_need_value(const struct option_def *table, const char *word)
{
	for (const char *at = word + 1; *at; at++) {
		const struct option_def *def = options_find_letter(table, *at);

		if (def && option_takes(def) != TAKES_NONE)
			return option_takes(def) == TAKES_REQUIRED && !at[1];
	}
	return false;
}

int sbatch_abbreviation_expand(
	const struct option_def *table, char **argv, struct why *why)
{
	for (size_t i = 1; argv[i] && argv[i][0] == '-' && argv[i][1]; i++) {
		const struct option_def *def;
		int r;

		if (strcmp(argv[i], "--") == 0)
			break;
		if (argv[i][1] != '-') {
			i += letters_need_value(table, argv[i]) && argv[i + 1];
			continue;
		}
		r = expand(table, &argv[i], &def, why);
		if (r < 0)
			return r;
		i += def && option_takes(def) == TAKES_REQUIRED &&
		     !strchr(argv[i], '=') && argv[i + 1];
	}
	return 0;
}
