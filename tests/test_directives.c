/* The #SBATCH lines of a script.  What sbatch 22.05 makes of each was tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "directives.h"

/* Writes the words of all lines to @out, each in [], and "!" for an error.  Returns the line. */
static unsigned read_words(const char *script, char *out, size_t size)
{
	struct directives directives;
	struct directive line;
	struct text text = text_on(out, size);
	char copy[512];
	int r;

	text_copy(copy, sizeof(copy), script);
	r = directives_begin(&directives, copy, strlen(copy), NULL);
	assert_int_equal(r, 0);
	while ((r = directives_take(&directives, &line, NULL)) == 0) {
		for (unsigned i = 0; i < line.count; i++)
			text_addf(&text, "[%s]", line.words[i]);
		assert_null(line.words[line.count]);
	}
	if (r < 0)
		text_add(&text, "!");
	return directives.line;
}

static void words_are_those_of_sbatch(void **state)
{
	static const struct {
		const char *lines, *expected;
	} rows[] = {
		{ "#SBATCH -J a --gpus=2\n", "[-J][a][--gpus=2]" },
		{ "#SBATCH -J \"a b\" -t 1 # more\n", "[-J][a b][-t][1]" },
		{ "#SBATCH --job-name=a#b\n", "[--job-name=a]" },
		{ "#SBATCH --comment '# x' -n 2\n", "[--comment][# x][-n][2]" },
		{ "#SBATCH --comment=\\#x\n", "[--comment=#x]" },
		{ "#SBATCH -J 'a b'c\\\\d\n", "[-J][a bc\\d]" },
		{ "#SBATCH -J 'a\\\\b'\n", "[-J][a\\b]" },
		{ "#SBATCH -J \"a\\\"b\"\n", "[-J][a\"b]" },
		{ "#SBATCH -J a\\\n#SBATCH -n 2\n", "[-J][a][-n][2]" },
		{ "#SBATCH -J $HOME;`x`*\n", "[-J][$HOME;`x`*]" },
		{ "#SBATCH --comment=\"\" ''\n", "[--comment=][]" },
		{ "#SBATCH\t-J\ttab\n", "[-J][tab]" },
		{ "#SBATCH-J glued\n", "[-J][glued]" },
		{ "#SBATCH\n#SBATCH # nothing\n#SBATCH -H", "[-H]" },
		{ "#SBATCH -J \"open\n", "!" },
		{ "#SBATCH -J 'open\"\n#SBATCH -H\n", "!" },
		/* sbatch splits these: what it does then, no user means */
		{ "#SBATCH -J a\\ b\n", "[-J][a b]" },
		{ "#SBATCH -b fri\\ 9:00 -H\n", "[-b][fri 9:00][-H]" },
		{ "#SBATCH --begin=fri\\\t9:00\n", "[--begin=fri\t9:00]" },
		{ "#SBATCH -J a\\  b\n", "[-J][a ][b]" },
		{ "#SBATCH -J a\\ \t\n#SBATCH -n 2\n", "[-J][a][-n][2]" },
		/* what is no line of options */
		{ " #SBATCH -J a\n##SBATCH -J a\n# SBATCH -J a\n#sbatch -J a\n", "" },
		{ "\n \t\n  # comment\n#SBATCH -J a\n", "[-J][a]" },
		{ "#SBATCH -J a\nset -e\n#SBATCH -J b\n", "[-J][a]" },
		{ ": <<E\n#SBATCH -J a\nE\n", "" },
	};
	char script[256], words[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		(void)snprintf(script, sizeof(script), "#!/bin/sh\n%s", rows[i].lines);
		(void)read_words(script, words, sizeof(words));
		assert_string_equal(words, rows[i].expected);
	}
}

static void the_line_of_an_error_is_known(void **state)
{
	char words[64];

	(void)state;
	assert_int_equal(read_words("#!/bin/sh\n\n# c\n#SBATCH 'a\n#SBATCH b\n", words,
				 sizeof(words)),
		4);
}

static void too_many_words_are_refused(void **state)
{
	char script[512], words[512];
	struct text text = TEXT_ON(script);

	(void)state;
	text_add(&text, "#!/bin/sh\n#SBATCH");
	for (int i = 0; i < DIRECTIVE_WORDS_MAX; i++)
		text_add(&text, " a");
	(void)read_words(script, words, sizeof(words));
	assert_null(strchr(words, '!'));
	text_add(&text, " a");
	(void)read_words(script, words, sizeof(words));
	assert_string_equal(words, "!");
}

static void what_is_no_script_is_refused(void **state)
{
	static const struct {
		const char *text;
		size_t size;
	} rows[] = {
		{ "", 0 },
		{ "echo\n", 5 },
		{ "\n#!/bin/sh\n", 11 },
		{ "#!/bin/sh\r\necho\r\n", 17 },
		{ "#!/bin/sh\n\0\n", 12 },
	};
	struct directives directives;
	char copy[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct why why = WHY_NONE;

		memcpy(copy, rows[i].text, rows[i].size + 1);
		assert_int_equal(
			directives_begin(&directives, copy, rows[i].size, &why), -EINVAL);
		assert_true(why.text[0]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_those_of_sbatch),
		cmocka_unit_test(the_line_of_an_error_is_known),
		cmocka_unit_test(too_many_words_are_refused),
		cmocka_unit_test(what_is_no_script_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
