/*
 * Reading JSON: tokens, the members of an object, and what strings say.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "json_read.h"

static struct json_walk walk_of(const char *text)
{
	return JSON_WALK(text, strlen(text));
}

static void members_come_in_order(void **state)
{
	static const enum json_kind kinds[] = { JSON_STRING, JSON_NUMBER, JSON_BOOL,
		JSON_NULL, JSON_NESTED };
	struct json_walk walk =
		walk_of(" { \"a\": \"x\\\"y\", \"b\" :-1.5e3,\"c\":true, \"d\":null,\n"
			"\"e\": [{\"]\": 1}] } ");
	struct json_value key, value;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(json_next(&walk, &key, &value), JSON_MEMBER);
		assert_int_equal(key.size, 1);
		assert_int_equal(key.at[0], 'a' + (int)i);
		assert_int_equal(value.kind, kinds[i]);
	}
	assert_int_equal(json_next(&walk, &key, &value), 0);
}

static void what_is_no_object_is_refused(void **state)
{
	static const char *const texts[] = { "", "[]", "{", "{\"a\"}", "{\"a\":}", "{} x",
		"{\"a\":1 \"b\":2}", "{\"a\":[}", "{\"a\":\"\\x\"}", "{\"a\":\"\n\"}",
		"{\"a\":\"", "{\"a\":[[[[[[[[[]]]]]]]]]}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct json_walk walk = walk_of(texts[i]);
		struct json_value key, value;
		int r;

		do
			r = json_next(&walk, &key, &value);
		while (r == JSON_MEMBER);
		if (r != -EINVAL)
			fail_msg("'%s': %d", texts[i], r);
	}
}

static void a_string_says_where_its_fault_is(void **state)
{
	static const struct {
		const char *text;
		int result;
		size_t at;
	} cases[] = {
		{ "\"ab\"c", 0, 4 },
		{ "\"ab", JSON_STRING_OPEN, 3 },
		{ "\"a\tb\"", JSON_STRING_OPEN, 2 },
		{ "\"ab\\x\"", JSON_STRING_ESCAPE, 3 },
		{ "\"\\u12g4\"", JSON_STRING_ESCAPE, 1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_walk walk = walk_of(cases[i].text);
		struct json_value value;

		assert_true(json_take(&walk, '"'));
		assert_int_equal(json_take_string(&walk, &value), cases[i].result);
		assert_int_equal(walk.at - cases[i].text, cases[i].at);
	}
}

static void escapes_are_decoded(void **state)
{
	static const struct {
		const char *text, *decoded; /* NULL: -EINVAL */
		const char *printable;
	} cases[] = {
		{ "a\\n\\\"\\/\\\\", "a\n\"/\\", "a?\"/\\" },
		{ "\\u00e4\\u20AC", "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac" },
		{ "\\ud83d\\ude00", "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
		{ "\\ud83d", NULL, "\xef\xbf\xbd" },
		{ "\\ude00", NULL, "\xef\xbf\xbd" },
		{ "\\ud83d\\u0041", NULL,
			"\xef\xbf\xbd"
			"A" },
		{ "b\\u0000", NULL, "b?" },
		{ "\xff", "\xff", "?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_value value = { JSON_STRING, cases[i].text,
			strlen(cases[i].text) };
		char decoded[32], printable[32];
		struct text out = TEXT_ON(decoded), shown = TEXT_ON(printable);

		assert_int_equal(
			json_decode(&value, &out), cases[i].decoded ? 0 : -EINVAL);
		if (cases[i].decoded)
			assert_string_equal(decoded, cases[i].decoded);
		json_unescape(&value, &shown);
		assert_string_equal(printable, cases[i].printable);
	}
}

static void numbers_have_a_range(void **state)
{
	static const struct {
		const char *text;
		int result;
		int64_t value;
	} cases[] = {
		{ "0", 0, 0 },
		{ "-5", 0, -5 },
		{ "9", 0, 9 },
		{ "10", -EINVAL, 0 },
		{ "-6", -EINVAL, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "1e0", -EINVAL, 0 },
		{ "99999999999999999999", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct json_walk walk = walk_of(cases[i].text);
		struct json_value value = json_take_number(&walk);
		int64_t number = 0;

		assert_true(json_is_at_end(&walk));
		assert_int_equal(
			json_read_signed(&value, -5, 9, &number), cases[i].result);
		assert_int_equal(number, cases[i].value);
	}
}

static void elements_come_in_order(void **state)
{
	static const char *const wrong[] = { "", "{}", "[", "[1", "[1,", "[1 2]", "[] x",
		"[,1]" };
	struct json_walk walk = walk_of(" [ 1, \"a]\" ,[2],\n{\"b\":[]}] ");
	static const size_t sizes[] = { 1, 2, 3, 8 };
	struct json_value value;
	int r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		assert_int_equal(json_element(&walk, &value), JSON_MEMBER);
		assert_int_equal(value.size, sizes[i]);
	}
	assert_int_equal(json_element(&walk, &value), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		walk = walk_of(wrong[i]);
		while ((r = json_element(&walk, &value)) == JSON_MEMBER)
			;
		assert_int_equal(r, -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_come_in_order),
		cmocka_unit_test(what_is_no_object_is_refused),
		cmocka_unit_test(elements_come_in_order),
		cmocka_unit_test(a_string_says_where_its_fault_is),
		cmocka_unit_test(escapes_are_decoded),
		cmocka_unit_test(numbers_have_a_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
