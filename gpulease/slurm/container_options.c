#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "container_options.h"
#include "option_table.h"

static int read_no(const char *value, void *at, struct why *why)
{
	(void)value;
	(void)why;
	*(bool *)at = false;
	return 0;
}

#define AT(field) offsetof(struct container_wish, field)
#define TEXT(name_, metavar_, field)                                         \
	{                                                                    \
		.kind = OPTION_TEXT, .name = (name_), .metavar = (metavar_), \
		.offset = AT(field)                                          \
	}
#define YES(name_, field)                                                 \
	{                                                                 \
		.kind = OPTION_FLAG, .name = (name_), .offset = AT(field) \
	}
#define NO(name_, field)                                                 \
	{                                                                \
		.kind = OPTION_CUSTOM, .name = (name_), .read = read_no, \
		.offset = AT(field)                                      \
	}

/* clang-format off */
static const struct option_def table[] = {
	TEXT("container-image", "IMAGE", image),
	TEXT("container-mounts", "SRC:DST", mounts),
	TEXT("container-workdir", "DIR", workdir),
	TEXT("container-name", "NAME", name),
	TEXT("container-save", "FILE", save),
	TEXT("container-env", "NAME", variables),
	TEXT("container", "BUNDLE", bundle),
	YES("container-mount-home", has_home),
	NO("no-container-mount-home", has_home),
	YES("no-container-remap-root", keeps_user),
	NO("container-remap-root", keeps_user),
	YES("container-entrypoint", has_entrypoint),
	NO("no-container-entrypoint", has_entrypoint),
	YES("container-entrypoint-log", is_ignored),
	YES("container-readonly", is_readonly),
	NO("container-writable", is_readonly),
	{ .kind = OPTION_END },
};
/* clang-format on */

/* Reads the one option of pyxis at @words.  Returns the number of its words, or -EINVAL. */
static int read_one(
	char **words, bool has_value, struct container_wish *wish, struct why *why)
{
	static char name[] = "srun";
	char *argv[] = { name, words[0], has_value ? words[1] : NULL, NULL };
	struct options_result result;
	int r = options_parse(table, argv, wish, &result, why);

	return r < 0 ? r : has_value && words[1] ? 2 : 1;
}

/* Whether the option @word of gpulease takes the next word as its value. */
static bool takes_next(const char *word)
{
	const struct option_def *def = NULL;

	if (word[1] == '-') {
		def = options_find(option_table, word + 2, strcspn(word + 2, "="));
		return def && option_takes(def) == TAKES_REQUIRED && !strchr(word, '=');
	}
	while (*++word) {
		def = options_find_letter(option_table, *word);
		if (!def || option_takes(def) != TAKES_NONE)
			break;
	}
	return *word && !word[1] && def && option_takes(def) == TAKES_REQUIRED;
}

/* Whether @word is the long option @name of gpulease, perhaps with a value. */
static bool is_option(const char *word, const char *name)
{
	const struct option_def *def = NULL;

	if (word[1] == '-')
		def = options_find(option_table, word + 2, strcspn(word + 2, "="));
	return def && strcmp(def->name, name) == 0;
}

/* Takes the words of the option at @at, which is not of pyxis.  Returns the last of them. */
static char **take_kept(char **at, struct container_words *ret)
{
	char *word = *at, *next = takes_next(word) ? at[1] : NULL;

	if (is_option(word, "export") && (next || strchr(word, '='))) {
		ret->exported = next ? next : strchr(word, '=') + 1;
		return next ? at + 1 : at;
	}
	ret->has_pty |= is_option(word, "pty");
	ret->options[ret->count++] = word;
	if (next)
		ret->options[ret->count++] = next;
	return next ? at + 1 : at;
}

int container_options_read(char **argv, struct container_wish *wish,
	struct container_words *ret, const char **ret_first, struct why *why)
{
	const char *first = NULL;
	size_t count = 0;
	char **at = argv[0] ? argv + 1 : argv;

	while (argv[count])
		count++;
	*ret = (struct container_words){ .options = calloc(count + 1, sizeof(char *)) };
	if (!ret->options)
		return -ENOMEM;
	for (; *at && at[0][0] == '-' && at[0][1]; at++) {
		const struct option_def *def = NULL;

		if (strcmp(*at, "--") == 0) {
			at++;
			break;
		}
		if (at[0][1] == '-')
			def = options_find(table, *at + 2, strcspn(*at + 2, "="));
		if (def) {
			bool has_value =
				option_takes(def) == TAKES_REQUIRED && !strchr(*at, '=');
			int r = read_one(at, has_value, wish, why);

			if (r < 0)
				return r;
			if (!first)
				*ret_first = first = def->name;
			at += r - 1;
			continue;
		}
		at = take_kept(at, ret);
	}
	ret->command = at;
	return 0;
}
