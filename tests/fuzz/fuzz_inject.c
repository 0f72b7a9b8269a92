/*
 * Any words as a command; the first byte chooses which of them stay, and the option: words
 * without braces stay the same, no placeholder is left except after a `$`, and the value of the
 * option is the GPUs.
 */
#include "inject.h"
#include "fuzz.h"

enum { WORDS_MAX = 64 };

static size_t count_words(char *const words[])
{
	size_t count = 0;

	while (words[count])
		count++;
	return count;
}

/* The value of the last @option before a word `--`; NULL: there is none. */
static const char *value_of(char *const words[], const char *option, bool is_joined)
{
	const char *found = NULL;
	size_t size = strlen(option);

	for (; *words && strcmp(*words, "--") != 0; words++) {
		if (!is_joined && strcmp(*words, option) == 0)
			found = words[1] ? words[1] : "";
		else if (strncmp(*words, option, size) == 0 &&
			 (is_joined || (*words)[size] == '='))
			found = *words + size + !is_joined;
	}
	return found;
}

/* A second pass changes only the braces that were left. */
static void check_again(char **made, size_t fixed, const struct inject_values *values)
{
	char **again = NULL;

	MUST(inject_arguments(made, fixed, NULL, values, &again) == 0);
	MUST(count_words(made) == count_words(again));
	for (size_t i = 0; made[i]; i++)
		if (i < fixed || !strchr(made[i], '{'))
			MUST(strcmp(made[i], again[i]) == 0);
	free(again);
}

static void check(char **words, size_t fixed, const char *option, const char *gpus)
{
	const struct inject_values values = { gpus, "2", "GPU-a,GPU-b", "17" };
	size_t count = count_words(words);
	const char *value;
	char **made = NULL;

	MUST(inject_arguments(words, fixed, option, &values, &made) == 0);
	for (size_t i = 0; i < fixed && i < count; i++)
		MUST(strcmp(made[i], words[i]) == 0);
	check_again(made, fixed, &values);
	value = option ? value_of(made + (fixed < count ? fixed : count), option,
				 option[strlen(option) - 1] == '=')
		       : NULL;
	if (option)
		MUST(*gpus ? value && strcmp(value, gpus) == 0 : !value);
	else
		MUST(count_words(made) == count);
	free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const options[] = { NULL, "--cuda", "-g", "devices=" };
	static const char *const lists[] = { "0,1", "" };
	char *words[WORDS_MAX + 1];
	size_t count = 0;
	uint8_t shape = size ? data[0] : 0;
	char *text = fuzz_string(data, size);

	MUST(text);
	for (char *at = text + (size > 0); at < text + size && count < WORDS_MAX;
		at += strlen(at) + 1)
		words[count++] = at;
	words[count] = NULL;
	check(words, shape >> 3 & 7, options[shape & 3], lists[shape >> 2 & 1]);
	free(text);
	return 0;
}
