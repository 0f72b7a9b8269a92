#include <errno.h>

#include "inject.h"

/* --- placeholders ------------------------------------------------------------------ */

/* One of them at the beginning of some text: what it becomes, and how long it is there. */
struct placeholder {
	const char *value; /* NULL: none is there */
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

/* Writes @word to @out, NULL: nowhere, with its placeholders filled in; returns its length. */
static size_t fill(const char *word, const struct inject_values *values, char *out)
{
	size_t used = 0;

	while (*word) {
		struct placeholder found = find_placeholder(word, values);
		size_t size = found.value_size;

		if (!found.value) {
			/* a `$` and what it keeps */
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

/* The option, in each form that it can have. */
struct injected {
	char *option, *value, *joined;
	size_t size;           /* of ->option, but for the `=` that it ends in */
	bool is_always_joined; /* it ends so */
};

/* `-1` is a number. */
static bool is_value(const char *word)
{
	return word && (word[0] != '-' || (word[1] >= '0' && word[1] <= '9'));
}

static char **add(char **out, const struct injected *injected, bool is_joined)
{
	if (!*injected->value)
		return out;
	*out++ = is_joined ? injected->joined : injected->option;
	if (!is_joined)
		*out++ = injected->value;
	return out;
}

/* From @from to @out, which has room for twice as many words and three more. */
static void set_option(char **from, const struct injected *injected, char **out)
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
		out = add(out, injected, is_joined);
		if (!is_joined && is_value(from[1]))
			from++;
	}
	if (!is_there)
		out = add(out, injected, injected->is_always_joined);
	while (*from)
		*out++ = *from++;
	*out = NULL;
}

/* The texts of the option go to @text. */
static struct injected make_option(const char *option, const char *gpus, char *text)
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

/* What the words need for their texts once they are filled, and how many they are. */
static size_t measure(
	char **words, size_t fixed, const struct inject_values *values, size_t *ret_count)
{
	size_t bytes = 0, i = 0;

	for (; words[i]; i++)
		if (i >= fixed && strchr(words[i], '{'))
			bytes += fill(words[i], values, NULL) + 1;
	*ret_count = i;
	return bytes;
}

/* To @out, the new texts to @text; returns where these end. */
static char *fill_all(char **words, size_t fixed, const struct inject_values *values,
	char **out, char *text)
{
	for (size_t i = 0; words[i]; i++) {
		bool is_filled = i >= fixed && strchr(words[i], '{');

		out[i] = is_filled ? text : words[i];
		if (is_filled)
			text += fill(words[i], values, text) + 1;
	}
	return text;
}

int inject_arguments(char **words, size_t fixed, const char *option,
	const struct inject_values *values, char ***ret)
{
	size_t count, bytes = measure(words, fixed, values, &count);
	/* an option without a value gets one, which makes two words of one */
	size_t wanted = option ? 2 * count + 3 : 0;
	char **out, **filled, *text;
	struct injected injected;

	if (option)
		bytes += strlen(option) + 2 * strlen(values->gpus) + 3;
	out = malloc((wanted + count + 1) * sizeof(*out) + bytes);
	if (!out)
		return -ENOMEM;
	filled = out + wanted;
	text = fill_all(words, fixed, values, filled, (char *)(filled + count + 1));
	filled[count] = NULL;
	if (option) {
		if (fixed > count)
			fixed = count;
		injected = make_option(option, values->gpus, text);
		memcpy(out, filled, fixed * sizeof(*out));
		set_option(filled + fixed, &injected, out + fixed);
	}
	*ret = out;
	return 0;
}
