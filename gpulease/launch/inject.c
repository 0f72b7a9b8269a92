#include <errno.h>

#include "inject.h"
#include "text.h"

/* --- placeholders ------------------------------------------------------------------ */

/* A placeholder at the beginning of a text: its value, and its length in the text. */
struct placeholder {
	const char *value; /* NULL: the text does not begin with a placeholder */
	size_t value_size, size;
};

static struct placeholder find_placeholder(
	const char *text, const struct inject_values *values)
{
	const struct {
		const char *name, *value;
	} known[] = {
		{ "{gpus}", values->gpus },
		{ "{ngpus}", values->ngpus },
		{ "{uuids}", values->uuids },
		{ "{id}", values->id },
	};
	size_t doubled = text[0] == '{' && text[1] == '{';

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		size_t size = strlen(known[i].name);

		if (strncmp(text + doubled, known[i].name, size) != 0)
			continue;
		if (!doubled)
			return (struct placeholder){ known[i].value,
				strlen(known[i].value), size };
		if (text[1 + size] == '}')
			return (struct placeholder){ text + 1, size, size + 2 };
	}
	return (struct placeholder){ NULL, 0, 0 };
}

/* Writes @word with its placeholders replaced to @out, if that is not NULL.  Returns the length. */
static size_t word_fill(const char *word, const struct inject_values *values, char *out)
{
	size_t used = 0;

	while (*word) {
		struct placeholder found = find_placeholder(word, values);
		size_t size = found.value_size;

		if (!found.value) {
			/* one character; a `$` together with the placeholder that it protects */
			size = 1;
			if (*word == '$')
				size += find_placeholder(word + 1, values).size;
			found = (struct placeholder){ word, size, size };
		}
		if (out)
			memcpy(out + used, found.value, size);
		used += size;
		word += found.size;
	}
	if (out)
		out[used] = '\0';
	return used;
}

/* --- the option -------------------------------------------------------------------- */

/* The option as the user wrote it, its value, and `OPTION=VALUE`. */
struct injected {
	char *option, *value, *joined;
	size_t size;           /* of ->option, without a final `=` */
	bool is_always_joined; /* the option ends in `=` */
};

bool inject_is_value(const char *word)
{
	return word[0] != '-' || is_digit(word[1]);
}

/* Adds the option in one of its forms, if there are GPUs.  Returns the end of the list. */
static char **injected_add(char **out, const struct injected *injected, bool is_joined)
{
	if (!*injected->value)
		return out;
	*out++ = is_joined ? injected->joined : injected->option;
	if (!is_joined)
		*out++ = injected->value;
	return out;
}

/*
 * Copies the words @from to @out with the option set or removed.  @out has room for twice as many
 * words and three more: an option without a value gets one, and a missing option is added.
 */
static void injected_set(char **from, const struct injected *injected, char **out)
{
	size_t size = injected->size;
	bool is_there = false;

	for (; *from && strcmp(*from, "--") != 0; from++) {
		bool is_joined = strncmp(*from, injected->option, size) == 0 &&
				 (*from)[size] == '=';

		if (!is_joined && (injected->is_always_joined ||
					  strcmp(*from, injected->option) != 0)) {
			*out++ = *from;
			continue;
		}
		is_there = true;
		out = injected_add(out, injected, is_joined);
		if (!is_joined && from[1] && inject_is_value(from[1]))
			from++;
	}
	if (!is_there)
		out = injected_add(out, injected, injected->is_always_joined);
	while (*from)
		*out++ = *from++;
	*out = NULL;
}

/* Makes the forms of the option; writes their texts to @text. */
static struct injected injected_make(const char *option, const char *gpus, char *text)
{
	size_t size = strlen(option);
	bool is_joined = option[size - 1] == '=';
	struct injected out = { (char *)option, text, text + strlen(gpus) + 1,
		size - is_joined, is_joined };

	memcpy(out.value, gpus, strlen(gpus) + 1);
	memcpy(out.joined, option, size);
	out.joined[out.size] = '=';
	memcpy(out.joined + out.size + 1, gpus, strlen(gpus) + 1);
	return out;
}

/* --- all of it --------------------------------------------------------------------- */

/* Returns how many bytes the words with placeholders need when filled, and counts all words. */
static size_t measure_words(
	char **words, size_t fixed, const struct inject_values *values, size_t *ret_count)
{
	size_t bytes = 0, i = 0;

	for (; words[i]; i++)
		if (i >= fixed && strchr(words[i], '{'))
			bytes += word_fill(words[i], values, NULL) + 1;
	*ret_count = i;
	return bytes;
}

/* Writes the words to @out and the texts of the filled ones to @text.  Returns the end of @text. */
static char *fill_words(char **words, size_t fixed, const struct inject_values *values,
	char **out, char *text)
{
	for (size_t i = 0; words[i]; i++) {
		bool is_filled = i >= fixed && strchr(words[i], '{');

		out[i] = is_filled ? text : words[i];
		if (is_filled)
			text += word_fill(words[i], values, text) + 1;
	}
	return text;
}

int inject_arguments(char **words, size_t fixed, const char *option,
	const struct inject_values *values, char ***ret)
{
	size_t count, bytes = measure_words(words, fixed, values, &count);
	/* room for injected_set() */
	size_t wanted = option ? 2 * count + 3 : 0;
	char **out, **filled, *text;
	struct injected injected;

	if (option)
		bytes += strlen(option) + 2 * strlen(values->gpus) + 3;
	out = malloc((wanted + count + 1) * sizeof(*out) + bytes);
	if (!out)
		return -ENOMEM;
	filled = out + wanted;
	text = fill_words(words, fixed, values, filled, (char *)(filled + count + 1));
	filled[count] = NULL;
	if (option) {
		if (fixed > count)
			fixed = count;
		injected = injected_make(option, values->gpus, text);
		memcpy(out, filled, fixed * sizeof(*out));
		injected_set(filled + fixed, &injected, out + fixed);
	}
	*ret = out;
	return 0;
}
