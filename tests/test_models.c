/*
 * Needs of models: both forms of the table, errors in them with their lines, and the name of the
 * model in a command.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "models.h"

static struct why why;

/* Looks up @name in the @size bytes at @text, in memory of exactly that size. */
static int find_in(
	const char *text, size_t size, const char *name, struct model_need *ret)
{
	autofree char *exact = malloc(size + 1);
	struct model_table table = {
		.file = "x", .text = exact, .size = size, .line = 1
	};

	assert_non_null(exact);
	memcpy(exact, text, size);
	why = WHY_NONE;
	return models_find(&table, name, ret, &why);
}

static int find(const char *text, const char *name, struct model_need *ret)
{
	return find_in(text, strlen(text), name, ret);
}

/* "2 gpus", "50%", "1024 MiB", "nothing". */
static const char *found(const char *text, const char *name)
{
	static char line[64];
	struct text out = TEXT_ON(line);
	struct model_need need = { 0 };
	int r = find(text, name, &need);

	if (r < 0)
		fail_msg("'%s': %s", text, why.text);
	if (r == MODELS_UNKNOWN)
		return "nothing";
	assert_int_equal(r, 0);
	if (need.vram_mib)
		text_addf(&out, "%llu MiB", (unsigned long long)need.vram_mib);
	else if (need.share_percent)
		text_addf(&out, "%u%%", need.share_percent);
	else
		text_addf(&out, "%u gpus", need.gpus);
	if (need.vram_mib || need.share_percent)
		assert_int_equal(need.gpus, 1);
	return line;
}

struct row {
	const char *text, *name, *expected;
};

static void check_found(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *is = found(rows[i].text, rows[i].name);

		if (strcmp(is, rows[i].expected) != 0)
			fail_msg("%s in '%s' is %s, not %s", rows[i].name, rows[i].text,
				is, rows[i].expected);
	}
}

/* The reason is one printable line without a final period, whatever model is looked up. */
static void check_refused_bytes(const char *text, size_t size, const char *reason)
{
	char printable[sizeof(why.text)];
	struct text shown = TEXT_ON(printable);
	struct model_need need = { .gpus = 77 };

	if (find_in(text, size, "a", &need) != -EINVAL)
		fail_msg("'%s' is read", text);
	assert_int_equal(need.gpus, 77);
	if (!strstr(why.text, reason))
		fail_msg("'%s': '%s' does not say '%s'", text, why.text, reason);
	assert_int_equal(strncmp(why.text, "x, line ", 8), 0);
	text_add_printable(&shown, why.text, strlen(why.text));
	assert_string_equal(printable, why.text);
	assert_int_not_equal(why.text[strlen(why.text) - 1], '.');
}

static void check_refused(const char *text, const char *reason)
{
	check_refused_bytes(text, strlen(text), reason);
}

/* --- lines ------------------------------------------------------------------------- */

static void a_line_names_a_model_and_its_need(void **state)
{
	static const char table[] = "# models\nqwen2.5-3b-inst = 0.5\r\n"
				    "\torg/Big Model=4\n\nsmall =18G # of 80\n"
				    "odd = 0.125\nbig = 1.2\nnone = 0\ntiny = 500M\n"
				    "bytes = 8000MiB";
	static const struct row rows[] = {
		{ table, "qwen2.5-3b-inst", "50%" },
		{ table, "org/Big Model", "4 gpus" },
		{ table, "small", "18432 MiB" },
		{ table, "odd", "13%" },
		{ table, "big", "2 gpus" },
		{ table, "none", "0 gpus" },
		{ table, "tiny", "500 MiB" },
		{ table, "bytes", "8000 MiB" },
		{ table, "qwen2.5-3b", "nothing" },
		{ table, "Small", "nothing" },
		{ table, "", "nothing" },
		{ "default = 2\na = 1", "a", "1 gpus" },
		{ "default = 2\na = 1", "b", "2 gpus" },
		{ "a = 1\ndefault = 0.3", "default", "30%" },
		{ "a = 1\ndefault = 0.3", "", "30%" },
		{ "", "a", "nothing" },
		{ "\n\n# only this", "a", "nothing" },
		{ "a = .5", "a", "50%" },
	};

	(void)state;
	check_found(rows, ARRAY_SIZE(rows));
}

static void a_wrong_line_is_named(void **state)
{
	static const char *const bad[][2] = {
		{ "b", "x, line 1: 'b' is not a model; write NAME = NEED" },
		{ "b = 1\n\nc 0.5", "x, line 3: 'c 0.5' is not a model" },
		{ "b = 1\n[other]\nc = 1", "x, line 2: '[other]' is not a model" },
		{ "[b] = 1", "'[b] = 1' is not a model" },
		{ "= 1", "x, line 1: the name is missing; write NAME = NEED" },
		{ "b =", "x, line 1: the need is missing; write NAME = NEED" },
		{ "b = # 1", "the need is missing" },
		{ "b = x", "x, line 1: b: 'x' is not a number of GPUs" },
		{ "b = -1", "b: '-1' is negative" },
		{ "b = 1\nb2 = 18X\n", "x, line 2: b2: '18X' is not a size" },
		{ "b = 0G", "b: '0G' is no memory" },
		{ "b = 129", "b: '129' GPUs are too many" },
		{ "b = 1 2", "b: '1 2' is not a size" },
		{ "b = c = 1", "b: 'c = 1' is not a number of GPUs" },
		{ "b = 11111111111111111111111111111111111",
			"' is not a need; write 0.5, " },
		{ "a = 1\n\na = 1", "x, line 3: 'a' is set twice, also in line 1" },
		{ "default = 1\nb = 1\ndefault = 2", "line 3: 'default' is set twice" },
		{ "c = 1\nb = 1\nd = 1\nb = 2\nc = 1",
			"x, line 4: 'b' is set twice, also in line 2" },
		{ "\x1b[2J = 1\nb", "line 2: 'b' is not a model" },
		{ "\x1b[2J", "'?[2J' is not a model" },
	};
	char line[MODELS_NAME_SIZE + 16];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_refused(bad[i][0], bad[i][1]);
	check_refused_bytes("b = 1\0", 6, "'1?' is not a need");
	(void)snprintf(line, sizeof(line), "%0*d = 1", MODELS_NAME_SIZE, 0);
	check_refused(line, "' is too long");
	check_found((struct row[]){ { line + 1, line + 1, "nothing" } }, 1);
}

/* --- JSON -------------------------------------------------------------------------- */

static void json_has_models_and_a_default(void **state)
{
	static const char table[] =
		"\n\t{ \"default_requirement\": 1.0,\r\n  \"models\": {\n"
		"    \"Qwen2.5-3B\": 0.5,\n    \"org\\/x\\u002d\\n1\" : 2,"
		"\"\\u00fc\\u20ac\\ud83d\\ude00\":0.125, \"\\\"\\\\\": 3.0000001 } } \n";
	static const struct row rows[] = {
		{ table, "Qwen2.5-3B", "50%" },
		{ table, "org/x-\n1", "2 gpus" },
		{ table, "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", "13%" },
		{ table, "\"\\", "4 gpus" },
		{ table, "models", "1 gpus" },
		{ table, "default", "1 gpus" },
		{ "{}", "a", "nothing" },
		{ "{\"models\":{}}", "a", "nothing" },
		{ "{\"models\":{\"a\":0.0}}", "a", "0 gpus" },
		{ "{\"models\":{\"default\":2}}", "a", "nothing" },
		{ "{\"models\":{\"default\":2}}", "default", "2 gpus" },
		{ "{\"default_requirement\":0.25}", "a", "25%" },
		{ "{\"models\":{\"a\":2},\"default_requirement\":1}", "a", "2 gpus" },
	};

	(void)state;
	check_found(rows, ARRAY_SIZE(rows));
}

static void wrong_json_is_named_with_its_line(void **state)
{
	static const char *const bad[][2] = {
		{ "{", "x, line 1: expected a name in \"\", not the end" },
		{ "{\n\"models\"\n", "x, line 3: expected ':', not the end" },
		{ "{\"models\": 1}", "expected '{', not '1'" },
		{ "{\"models\": {\"a\": }}", "expected a number of GPUs, not '}'" },
		{ "{\"models\": {\"a\": \"18G\"}}", "a number of GPUs, not '\"'" },
		{ "{\"models\": {\"a\": null}}", "a number of GPUs, not 'n'" },
		{ "{\"models\": {\"a\": .5}}", "a number of GPUs, not '.'" },
		{ "{\"models\": {\"a\": [1]}}", "a number of GPUs, not '['" },
		{ "{\"models\": {\n\"a\": 1\n\"b\": 2}}",
			"x, line 3: expected ',' or '}', not '\"'" },
		{ "{\"models\": {\"a\": 1,}}", "expected a name in \"\", not '}'" },
		{ "{\"models\": {\"a\": 1}", "expected ',' or '}', not the end" },
		{ "{\"models\": {\"a\": 1}}\n\n1", "x, line 3: expected the end" },
		{ "{'models': {}}", "expected a name in \"\", not '''" },
		{ "{\"modles\": {}}",
			"'modles' is unknown; write \"default_requirement\" and" },
		{ "{\"models\": {},\n\"models\": {}}",
			"x, line 2: 'models' is one member too many" },
		{ "{\"default_requirement\": 1, \"default_requirement\": 1}",
			"'default' is set twice" },
		{ "{\"models\": {\"a\": 1,\n \"a\": 1}}",
			"x, line 2: 'a' is set twice, also in line 1" },
		{ "{\"models\": {\"b\\u002fc\": 1,\n \"b\\/c\": 1}}",
			"x, line 2: 'b/c' is set twice, also in line 1" },
		{ "{\"models\": {\n\n\"b\": 1e1}}",
			"x, line 3: '1e1' has an exponent; write 0.5 or 2" },
		{ "{\"models\": {\"b\": 1.}}", "b: '1.' is not a number of GPUs" },
		{ "{\"models\": {\"b\": -1}}", "b: '-1' is negative" },
		{ "{\"models\": {\"b\": 129}}", "b: '129' GPUs are too many" },
		{ "{\"models\": {\"b", "expected the end of a name in \"\"" },
		{ "{\"models\": {\"b\n\": 1}}", "expected the end of a name" },
		{ "{\"models\": {\"b\\x\": 1}}", "a bad escape in the name 'b'" },
		{ "{\"models\": {\"b\\u12\": 1}}", "a bad escape" },
		{ "{\"models\": {\"\\u0000\": 1}}", "a bad escape" },
		{ "{\"models\": {\"\\ud800\": 1}}", "a bad escape" },
		{ "{\"models\": {\"\\ud800\\u0041\": 1}}", "a bad escape" },
		{ "{\"models\": {\"\\udc00\": 1}}", "a bad escape" },
		{ "{\"models\": {\"b\\", "a bad escape" },
		{ "{\"models\": {\"b\\ud83d\\", "a bad escape" },
		{ "{\"models\": {\"b\\u1", "a bad escape" },
	};
	char text[2 * MODELS_NAME_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		check_refused(bad[i][0], bad[i][1]);
	check_refused_bytes("{\"models\": {\"b\": 1\0}}", 21, "expected ',' or '}'");
	check_refused_bytes("{\0}", 3, "expected a name");
	(void)snprintf(
		text, sizeof(text), "{\"models\": {\"%0*d\": 1}}", MODELS_NAME_SIZE, 0);
	check_refused(text, "' is too long");
}

/* --- tables and commands ----------------------------------------------------------- */

static void a_table_may_begin_at_any_line_or_be_missing(void **state)
{
	struct model_table none = { .file = "x" };
	struct model_table behind = {
		.file = "y", .text = "a = 1\nb", .size = 7, .line = 9
	};
	struct model_need need;

	(void)state;
	assert_int_equal(models_find(&none, "a", &need, &why), MODELS_UNKNOWN);
	assert_int_equal(models_check(&behind, &why), -EINVAL);
	assert_string_equal(
		why.text, "y, line 10: 'b' is not a model; write NAME = NEED");
	behind.size = 5;
	assert_int_equal(models_check(&behind, &why), 0);
	behind.size = 0;
	assert_int_equal(models_check(&behind, &why), 0);
	assert_int_equal(models_find(&behind, "a", &need, NULL), MODELS_UNKNOWN);
}

static void the_command_names_its_model(void **state)
{
	static const struct {
		const char *words[8], *option, *expected;
	} rows[] = {
		{ { "python", "run.py", "--llm", "q" }, "--llm", "q" },
		{ { "python", "run.py", "--llm=q", "--x" }, "--llm", "q" },
		{ { "python", "--llm", "a", "--llm=b" }, "--llm", "b" },
		{ { "python", "--llm=b", "--llm", "a" }, "--llm", "a" },
		{ { "python", "--llm=b", "--llm" }, "--llm", "b" },
		{ { "python", "--llm" }, "--llm", NULL },
		{ { "python", "--llm=" }, "--llm", "" },
		{ { "python", "--llm", "--llm", "a" }, "--llm", "--llm" },
		{ { "python", "--", "--llm", "a" }, "--llm", "a" },
		{ { "python", "--llms", "a", "--ll=b", "llm=c" }, "--llm", NULL },
		{ { "--llm", "a" }, "--llm", NULL },
		{ { "python", "-m", "x" }, "-m", "x" },
		{ { "python", "-mx" }, "-m", NULL },
		{ { "python" }, "--llm", NULL },
		{ { NULL }, "--llm", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *words[8];
		const char *value;

		for (size_t j = 0; j < ARRAY_SIZE(words); j++)
			words[j] = (char *)(uintptr_t)rows[i].words[j];
		value = models_option_value(words, rows[i].option);
		if (!value || !rows[i].expected)
			assert_ptr_equal(value, rows[i].expected);
		else
			assert_string_equal(value, rows[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_names_a_model_and_its_need),
		cmocka_unit_test(a_wrong_line_is_named),
		cmocka_unit_test(json_has_models_and_a_default),
		cmocka_unit_test(wrong_json_is_named_with_its_line),
		cmocka_unit_test(a_table_may_begin_at_any_line_or_be_missing),
		cmocka_unit_test(the_command_names_its_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
