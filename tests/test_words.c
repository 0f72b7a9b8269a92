/* Lines for a shell: their words, and words as they are written there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "models.h"
#include "words.h"

/* "<a><b>" */
static void check_words(const char *line, const char *wanted)
{
	char is[256];
	struct text out = TEXT_ON(is);
	const char *at = line;

	for (size_t used = 0;; used = out.used) {
		text_add(&out, "<");
		if (!words_take(&at, &out)) {
			assert_int_equal(out.used, used + 1);
			is[used] = '\0';
			break;
		}
		text_add(&out, ">");
	}
	assert_true(*at == '\0');
	if (strcmp(is, wanted) != 0)
		fail_msg("'%s' is %s, not %s", line, is, wanted);
}

static void a_line_is_split_as_a_shell_does_it(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ " \t", "" },
		{ "a", "<a>" },
		{ " a  b\tc\n", "<a><b><c>" },
		{ "a'b c'd", "<ab cd>" },
		{ "'a\\'", "<a\\>" },
		{ "''", "<>" },
		{ "a \"\" b", "<a><><b>" },
		{ "\"a b\"'c'", "<a bc>" },
		{ "\"a\\\"b\\\\c\\$d\\`e\\f\"", "<a\"b\\c$d`e\\f>" },
		{ "\"a\\\nb\" c\\\nd", "<ab><cd>" },
		{ "a\\ b \\'c", "<a b><'c>" },
		{ "a\\", "<a\\>" },
		{ "'a b", "<a b>" },
		{ "\"a b", "<a b>" },
		{ "\"a\\", "<a\\>" },
		{ "$HOME ~ *", "<$HOME><~><*>" },
		{ "a;b&&c|d>e<f(g)", "<a><b><c><d><e><f><g>" },
		{ "a # b 'c\nd", "<a><d>" },
		{ "a#b #", "<a#b>" },
		{ "# a", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_words(rows[i][0], rows[i][1]);
}

static void check_quoted(const char *word, const char *wanted)
{
	char is[64];
	struct text out = TEXT_ON(is);

	words_add_quoted(&out, word);
	if (strcmp(is, wanted) != 0)
		fail_msg("'%s' becomes %s, not %s", word, is, wanted);
}

static void a_word_is_quoted_if_a_shell_would_change_it(void **state)
{
	static const char *const rows[][2] = {
		{ "a", "a" },
		{ "/a_b-c.d,e:f@g%h+1", "/a_b-c.d,e:f@g%h+1" },
		{ "--a=b", "--a=b" },
		{ "a=b", "'a=b'" },
		{ "", "''" },
		{ "a b", "'a b'" },
		{ "it's", "'it'\\''s'" },
		{ "'", "''\\'''" },
		{ "~", "'~'" },
		{ "{a,b}", "'{a,b}'" },
		{ "#", "'#'" },
		{ "!", "'!'" },
		{ "[a]", "'[a]'" },
		{ "\xc3\xa4", "'\xc3\xa4'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_quoted(rows[i][0], rows[i][1]);
}

static void quotes_keep_every_character(void **state)
{
	static const struct {
		const char *string, *quoted;
	} rows[] = {
		{ "", "''" },
		{ "a", "'a'" },
		{ "a b\n$c`\"\\", "'a b\n$c`\"\\'" },
		{ "it's", "'it'\\''s'" },
		{ "''", "''\\'''\\'''" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char out[64];
		struct text text = TEXT_ON(out);

		words_add_in_quotes(&text, rows[i].string);
		assert_string_equal(out, rows[i].quoted);
	}
}

static void every_byte_comes_back(void **state)
{
	char line[1024];

	(void)state;
	for (int first = 1; first < 256; first++) {
		char word[] = { (char)first, 'a', (char)first, '\0' }, is[8];
		struct text quoted = TEXT_ON(line), read = TEXT_ON(is);
		const char *at = line;

		words_add_quoted(&quoted, word);
		text_add(&quoted, " b");
		assert_true(words_take(&at, &read));
		assert_string_equal(is, word);
		assert_string_equal(at, " b");
	}
}

static void check_value(const char *line, const char *wanted)
{
	char value[MODELS_VALUE_SIZE] = "none";
	bool is_found = models_line_value(line, "--llm", value);

	if (is_found != (strcmp(wanted, "none") != 0) || strcmp(value, wanted) != 0)
		fail_msg("'%s' names %s, not %s", line, value, wanted);
}

static void the_model_is_found_in_a_line(void **state)
{
	static const char *const rows[][2] = {
		{ "python x.py --llm a", "a" },
		{ "python x.py --llm=a -b", "a" },
		{ "python x.py --llm 'a b'", "a b" },
		{ "python x.py \"--llm=a\"", "a" },
		{ "cd y && python x.py --llm a>log; b", "a" },
		{ "x --llm a --llm b", "b" },
		{ "x --llm a --llm=", "" },
		{ "x --llm a --llm", "a" },
		{ "x --llm", "none" },
		{ "x --llms a", "none" },
		{ "x '--llm a'", "none" },
		{ "--llm a", "none" },
		{ "x # --llm a", "none" },
		{ "", "none" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_value(rows[i][0], rows[i][1]);
}

/* A name that is cut must not match a shorter name of the table. */
static void a_long_name_is_not_taken_for_a_shorter_one(void **state)
{
	char line[1024] = "x --llm=", value[MODELS_VALUE_SIZE];

	(void)state;
	memset(line + 8, 'a', 900);
	assert_true(models_line_value(line, "--llm", value));
	assert_int_equal(strlen(value), MODELS_NAME_SIZE);
	memcpy(line, "x --llm ", 8);
	assert_true(models_line_value(line, "--llm", value));
	assert_int_equal(strlen(value), MODELS_NAME_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_split_as_a_shell_does_it),
		cmocka_unit_test(a_word_is_quoted_if_a_shell_would_change_it),
		cmocka_unit_test(quotes_keep_every_character),
		cmocka_unit_test(every_byte_comes_back),
		cmocka_unit_test(the_model_is_found_in_a_line),
		cmocka_unit_test(a_long_name_is_not_taken_for_a_shorter_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
