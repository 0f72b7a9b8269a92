/*
 * Any bytes as a job script: the words of its lines lie inside it, and none is longer than its
 * line; and the table of sbatch takes any of them as options.
 */
#include "directives.h"
#include "sbatch_options.h"
#include "fuzz.h"

static void check_words(
	const struct directive *line, const char *text, const char *behind)
{
	MUST(line->count <= DIRECTIVE_WORDS_MAX && !line->words[line->count]);
	for (unsigned i = 0; i < line->count; i++) {
		const char *word = line->words[i];

		MUST(word >= text && word + strlen(word) < behind);
		MUST(!i || word > line->words[i - 1] + strlen(line->words[i - 1]));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sbatch_options options = { .values = { NULL } };
	struct directives directives;
	struct directive line;
	struct why why = WHY_NONE;
	char *text = fuzz_string(data, size);
	unsigned last = 0;
	int r;

	MUST(text);
	r = directives_begin(&directives, text, size, &why);
	MUST(r == 0 || why.text[0]);
	while (r == 0 && (r = directives_take(&directives, &line, &why)) == 0) {
		MUST(directives.line > last);
		last = directives.line;
		check_words(&line, text, text + size + 1);
		why = WHY_NONE;
		if (sbatch_options_read_line(
			    line.words, directives.line, &options, &why) < 0)
			MUST(why.text[0]);
	}
	free(text);
	return 0;
}
