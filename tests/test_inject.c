/*
 * The GPUs in the arguments of a command: tables of command lines and results.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "inject.h"
#include "split.h"

struct row {
	const char *line; /* as split() reads it */
	const char *expected;
	const char *option;
};

static const struct inject_values two = { "0,1", "2", "GPU-a,GPU-b", "17" };
static const struct inject_values none = { "", "0", "", "18" };

static void check(const struct row *row, size_t fixed, const struct inject_values *values)
{
	char line[512];
	struct text text = TEXT_ON(line);
	struct words words;
	char **made = NULL;

	split(row->line, &words);
	assert_int_equal(
		inject_arguments(words.argv, fixed, row->option, values, &made), 0);
	for (size_t i = 0; made[i]; i++)
		text_addf(&text, "%s%s", i ? " " : "", *made[i] ? made[i] : "''");
	assert_string_equal(line, row->expected);
	free(made);
}

static void check_all(
	const struct row *rows, size_t count, const struct inject_values *values)
{
	for (size_t i = 0; i < count; i++)
		check(&rows[i], 1, values);
}

static void placeholders_are_replaced(void **state)
{
	static const struct row rows[] = {
		{ .line = "x", .expected = "x" },
		{ .line = "x {gpus}", .expected = "x 0,1" },
		{ .line = "x {ngpus} {uuids} {id}", .expected = "x 2 GPU-a,GPU-b 17" },
		{ .line = "x --cuda={gpus} run-{id}-of-{ngpus}",
			.expected = "x --cuda=0,1 run-17-of-2" },
		{ .line = "x {gpus}{gpus}", .expected = "x 0,10,1" },
		{ .line = "{gpus} {gpus}", .expected = "{gpus} 0,1" },
		{ .line = "x '' {id} ''", .expected = "x '' 17 ''" },
	};

	(void)state;
	check_all(rows, ARRAY_SIZE(rows), &two);
}

static void doubled_braces_become_single_ones(void **state)
{
	static const struct row rows[] = {
		{ .line = "x {{gpus}}", .expected = "x {gpus}" },
		{ .line = "x a{{id}}b{id}", .expected = "x a{id}b17" },
		{ .line = "x {{{gpus}}}", .expected = "x {{gpus}}" },
		{ .line = "x {{gpus}", .expected = "x {0,1" },
		{ .line = "x {gpus}}", .expected = "x 0,1}" },
	};

	(void)state;
	check_all(rows, ARRAY_SIZE(rows), &two);
}

static void other_braces_and_variables_stay(void **state)
{
	static const struct row rows[] = {
		{ .line = "x {} {{}} { } {", .expected = "x {} {{}} { } {" },
		{ .line = "x {print} {gpu} {GPUS} {gpus",
			.expected = "x {print} {gpu} {GPUS} {gpus" },
		{ .line = "x {\"gpus\":1}", .expected = "x {\"gpus\":1}" },
		{ .line = "x ${id} a${gpus}b{id}", .expected = "x ${id} a${gpus}b17" },
		{ .line = "x ${{id}} $ {id}$", .expected = "x ${{id}} $ 17$" },
		{ .line = "x $${id}{id}", .expected = "x $${id}17" },
		{ .line = "x \\{id}", .expected = "x \\17" },
	};

	(void)state;
	check_all(rows, ARRAY_SIZE(rows), &two);
}

static void an_option_gets_the_gpus(void **state)
{
	static const struct row rows[] = {
		{ "x", "x --cuda 0,1", "--cuda" },
		{ "x a --b", "x a --b --cuda 0,1", "--cuda" },
		{ "x --cuda 7 a", "x --cuda 0,1 a", "--cuda" },
		{ "x --cuda=7 a", "x --cuda=0,1 a", "--cuda" },
		{ "x --cuda= a", "x --cuda=0,1 a", "--cuda" },
		{ "x a --cuda", "x a --cuda 0,1", "--cuda" },
		{ "x --cuda --b", "x --cuda 0,1 --b", "--cuda" },
		{ "x --cuda -1 b", "x --cuda 0,1 b", "--cuda" },
		{ "x --cuda 7 b --cuda=8", "x --cuda 0,1 b --cuda=0,1", "--cuda" },
		{ "x --cuda2 7", "x --cuda2 7 --cuda 0,1", "--cuda" },
		{ "x -g 3", "x -g 0,1", "-g" },
		{ "x -g=3", "x -g=0,1", "-g" },
		{ "x -g3", "x -g3 -g 0,1", "-g" },
		{ "--cuda a", "--cuda a --cuda 0,1", "--cuda" },
		{ "x --ids {id} --cuda {ngpus}", "x --ids 17 --cuda 0,1", "--cuda" },
	};

	(void)state;
	check_all(rows, ARRAY_SIZE(rows), &two);
}

static void an_option_that_ends_in_an_equals_sign_is_one_word(void **state)
{
	static const struct row rows[] = {
		{ "x a", "x a devices=0,1", "devices=" },
		{ "x devices=3 a", "x devices=0,1 a", "devices=" },
		{ "x devices a", "x devices a devices=0,1", "devices=" },
		{ "x --cuda 3", "x --cuda 3 --cuda=0,1", "--cuda=" },
	};

	(void)state;
	check_all(rows, ARRAY_SIZE(rows), &two);
}

static void words_after_two_dashes_are_no_options(void **state)
{
	static const struct row rows[] = {
		{ "x a -- --cuda 3", "x a --cuda 0,1 -- --cuda 3", "--cuda" },
		{ "x --cuda 3 -- a", "x --cuda 0,1 -- a", "--cuda" },
		{ "x --cuda -- a", "x --cuda 0,1 -- a", "--cuda" },
		{ "x -- {gpus}", "x -- 0,1", NULL },
	};

	(void)state;
	check_all(rows, ARRAY_SIZE(rows), &two);
}

static void without_gpus_the_option_is_removed(void **state)
{
	static const struct row rows[] = {
		{ "x a", "x a", "--cuda" },
		{ "x --cuda 3 a --cuda=4", "x a", "--cuda" },
		{ "x --cuda --b", "x --b", "--cuda" },
		{ "x devices=3", "x", "devices=" },
		{ "x [{gpus}] {uuids} {ngpus} {id}", "x [] '' 0 18", NULL },
	};

	(void)state;
	check_all(rows, ARRAY_SIZE(rows), &none);
}

static void the_first_words_stay(void **state)
{
	static const struct row rows[] = {
		{ "sh -c {id} {id} --cuda 1", "sh -c {id} 17 --cuda 0,1", "--cuda" },
		{ "sh --cuda 1 x", "sh --cuda 1 x --cuda 0,1", "--cuda" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(&rows[i], 3, &two);
}

static void the_arguments_are_not_modified(void **state)
{
	struct words words, before;
	char **made = NULL;

	(void)state;
	split("x {gpus} --cuda 3", &words);
	before = words;
	assert_int_equal(inject_arguments(words.argv, 1, "--cuda", &two, &made), 0);
	assert_memory_equal(words.text, before.text, sizeof(words.text));
	assert_string_equal(words.argv[1], "{gpus}");
	free(made);
}

static void the_result_does_not_point_into_the_values(void **state)
{
	char gpus[] = "0,1";
	const struct inject_values values = { gpus, "2", "", "1" };
	struct words words;
	char **made = NULL;

	(void)state;
	split("x {gpus}", &words);
	assert_int_equal(inject_arguments(words.argv, 1, "--cuda", &values, &made), 0);
	memset(gpus, 'x', sizeof(gpus) - 1);
	assert_string_equal(made[1], "0,1");
	assert_string_equal(made[3], "0,1");
	free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placeholders_are_replaced),
		cmocka_unit_test(doubled_braces_become_single_ones),
		cmocka_unit_test(other_braces_and_variables_stay),
		cmocka_unit_test(an_option_gets_the_gpus),
		cmocka_unit_test(an_option_that_ends_in_an_equals_sign_is_one_word),
		cmocka_unit_test(words_after_two_dashes_are_no_options),
		cmocka_unit_test(without_gpus_the_option_is_removed),
		cmocka_unit_test(the_first_words_stay),
		cmocka_unit_test(the_arguments_are_not_modified),
		cmocka_unit_test(the_result_does_not_point_into_the_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
