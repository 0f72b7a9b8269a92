#include <stdio.h>

#include "array_words.h"

/* Where the words of one task are made. */
struct making {
	const struct array_words *from;
	unsigned index;
	const char *name; /* of the array, for %x */
};

/* Appends @text so that no `%` in it stands for something. */
static void add_plain(const char *text, struct text *out)
{
	for (; *text; text++)
		text_addf(out, "%s%c", *text == '%' ? "%" : "", *text);
}

void array_words_expand(const char *pattern, uint64_t array, unsigned index,
	const char *name, struct text *out)
{
	while (*pattern) {
		size_t plain = strcspn(pattern, "%"), width;
		const char *letter;
		int zeros;

		text_add_bytes(out, pattern, plain);
		pattern += plain;
		if (!*pattern)
			break;
		width = strspn(pattern + 1, "0123456789");
		letter = pattern + 1 + width;
		/* file_pattern.c pads with at most 10 zeros, too */
		zeros = width > 1 ? 10 : width ? pattern[1] - '0' : 0;
		if (*letter == 'A' || *letter == 'a')
			text_addf(out, "%0*llu", zeros,
				(unsigned long long)(*letter == 'A' ? array : index));
		else if (*letter == 'x')
			add_plain(name, out);
		else
			text_add_bytes(out, pattern, width + 1 + (*letter != '\0'));
		pattern = *letter ? letter + 1 : letter;
	}
}

/* The value of @word if it is the option @name, "--name="; else NULL. */
static const char *value_of(const char *word, const char *name)
{
	size_t size = strlen(name);

	return strncmp(word, name, size) == 0 ? word + size : NULL;
}

/* Returns what @word becomes for the task: itself, or a new word.  NULL: there is no memory. */
static char *adapt(const struct making *making, char *word)
{
	static const char *const files[] = { "--output=", "--error=", "--input=" };
	uint64_t array = making->from->array;
	const char *value;
	char *out = NULL;

	if (value_of(word, "--name="))
		return asprintf(&out, "--name=%llu_%u", (unsigned long long)array,
			       making->index) < 0
			       ? NULL
			       : out;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char name[4096];
		struct text text = TEXT_ON(name);

		value = value_of(word, files[i]);
		if (!value)
			continue;
		array_words_expand(value, array, making->index, making->name, &text);
		return asprintf(&out, "%s%s", files[i], name) < 0 ? NULL : out;
	}
	return word;
}

/* Makes the option that tells the part `script` which task it is. */
static char *task_option(const struct array_words *from, unsigned index)
{
	const struct array_list *list = from->list;
	char *out;

	return asprintf(&out, "--array=%llu,%u,%u,%u,%u,%u,%s",
		       (unsigned long long)from->array, index, list->count,
		       list->indices[0], list->indices[list->count - 1], list->step,
		       from->record) < 0
		       ? NULL
		       : out;
}

char **array_words_make(const struct array_words *from, unsigned index)
{
	struct making making = { .from = from, .index = index, .name = "" };
	size_t count = 0, end = 0, at = 0;
	char **words;

	while (from->words[end] && strcmp(from->words[end], "--") != 0) {
		const char *name = value_of(from->words[end++], "--name=");

		making.name = name ? name : making.name;
	}
	while (from->words[count])
		count++;
	words = calloc(count + 2, sizeof(*words));
	if (!words)
		return NULL;
	/* after `--` come gpulease-slurm and its part `script`, which takes one more option */
	for (size_t i = 0; i < count; i++) {
		words[at] = i < end ? adapt(&making, from->words[i]) : from->words[i];
		if (!words[at++])
			return NULL;
		if (i == end + 2 && !(words[at++] = task_option(from, index)))
			return NULL;
	}
	return words;
}
