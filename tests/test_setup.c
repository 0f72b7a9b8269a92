/* The words before a command with --setup; tests/cli/setup.sh runs the shell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "exitcodes.h"
#include "setup.h"
#include "scratch.h"

#define WORD(text) ((char *)(text)) /* never written to */

/* Frees the memory that the program itself keeps until exec. */
static void free_made(char **made)
{
	free(made[2]);
	free(made);
}

static char **wrap(struct settings *settings)
{
	char **made = NULL;

	assert_int_equal(setup_wrap(&settings->environment, &made), 0);
	assert_int_equal(setup_words(&settings->environment), 4);
	assert_string_equal(made[1], "-c");
	assert_string_equal(made[3], made[0]);
	return made;
}

static void without_setup_and_conda_there_is_no_shell(void **state)
{
	struct settings settings = { .verb.kind = VERB_RUN };

	(void)state;
	assert_false(setup_is_wanted(&settings.environment));
	assert_int_equal(setup_words(&settings.environment), 0);
}

static void the_words_follow_the_shell(void **state)
{
	char *command[] = { WORD("a b"), WORD(""), WORD("c\n'd"), NULL };
	struct settings settings = { .environment.setup = ":",
		.environment.command = command };
	char **made = wrap(&settings);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(command); i++)
		assert_ptr_equal(made[4 + i], command[i]);
	free_made(made);
}

static void a_single_word_with_operators_is_a_line(void **state)
{
	static const char *const lines[] = { "a b", "a\tb", "a&&b", "a;b", "a|b", "$a",
		"`a`", "(a)", "a>b", "a<b", "a\nb" };
	static const char *const words[] = { "a", "no-such-command", "/no/such", "a=b",
		"{id}", "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines) + ARRAY_SIZE(words); i++) {
		bool is_line = i < ARRAY_SIZE(lines);
		const char *word = is_line ? lines[i] : words[i - ARRAY_SIZE(lines)];
		char *command[] = { WORD(word), NULL };
		struct settings settings = { .environment.setup = ":",
			.environment.command = command };
		char **made = wrap(&settings);

		if (is_line)
			assert_string_equal(made[4], "eval");
		assert_ptr_equal(made[4 + is_line], word);
		assert_null(made[5 + is_line]);
		free_made(made);
	}
}

static void a_program_is_no_line(void **state)
{
	struct scratch *s = *state;
	char path[128];
	char *command[] = { path, NULL };
	struct settings settings = { .environment.setup = ":",
		.environment.command = command };
	char **made;

	(void)snprintf(path, sizeof(path), "%s/a b", s->path);
	assert_int_equal(scratch_write(s, "a b", "#!/bin/sh\n"), 0);
	assert_int_equal(chmod(path, 0700), 0);
	made = wrap(&settings);
	assert_ptr_equal(made[4], path);
	assert_null(made[5]);
	free_made(made);
}

static void a_line_has_no_option_to_inject(void **state)
{
	char *command[] = { WORD("a && b"), NULL };
	struct settings settings = { .environment.setup = ":",
		.environment.inject = "--cuda",
		.environment.command = command };
	char **made = NULL;

	(void)state;
	assert_int_equal(setup_wrap(&settings.environment, &made), EXIT_MISUSE);
}

static void a_long_setup_is_not_cut(void **state)
{
	enum { SIZE = 100 * 1000 };
	char *command[] = { WORD("x"), NULL };
	struct settings settings = { .environment.command = command };
	char *setup = malloc(SIZE + 1);
	char **made;
	size_t quotes = 0;

	(void)state;
	assert_non_null(setup);
	memset(setup, '\'', SIZE);
	setup[SIZE] = '\0';
	settings.environment.setup = setup;
	made = wrap(&settings);
	for (const char *at = made[2]; (at = strstr(at, "'\\''")); at += 4)
		quotes++;
	assert_int_equal(quotes, SIZE);
	assert_non_null(strstr(made[2], "exec "));
	free(setup);
	free_made(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_setup_and_conda_there_is_no_shell),
		cmocka_unit_test(the_words_follow_the_shell),
		cmocka_unit_test(a_single_word_with_operators_is_a_line),
		SCRATCH_TEST(a_program_is_no_line),
		cmocka_unit_test(a_line_has_no_option_to_inject),
		cmocka_unit_test(a_long_setup_is_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
