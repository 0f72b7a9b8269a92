#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "text.h"

static void text_that_does_not_fit_is_cut_and_marked(void **state)
{
	char room[8];
	struct text text = TEXT_ON(room);

	(void)state;
	assert_string_equal(room, "");
	text_add(&text, "abc");
	text_addf(&text, "%d", 4567);
	assert_string_equal(room, "abc4567");
	assert_false(text.cut);
	text_add(&text, "");
	assert_false(text.cut);
	text_add(&text, "8");
	assert_true(text.cut);
	assert_string_equal(room, "abc4567");
	assert_int_equal(text.used, 7);
}

static void a_format_that_does_not_fit_is_cut(void **state)
{
	char room[6];
	struct text text = TEXT_ON(room);

	(void)state;
	text_addf(&text, "%s-%s", "abc", "defgh");
	assert_string_equal(room, "abc-d");
	assert_true(text.cut);
	text_addf(&text, "%d", 1);
	assert_string_equal(room, "abc-d");
}

static void a_text_of_one_byte_holds_nothing(void **state)
{
	char room[1];
	struct text text = TEXT_ON(room);

	(void)state;
	text_add_bytes(&text, "", 0);
	text_addf(&text, "%s", "");
	assert_false(text.cut);
	text_add(&text, "a");
	assert_true(text.cut);
	assert_string_equal(room, "");
}

static void a_copy_always_ends(void **state)
{
	char out[4] = "xxx";

	(void)state;
	text_copy(out, sizeof(out), "abcdef");
	assert_string_equal(out, "abc");
	text_copy(
		out, sizeof(out), "ab\xe2\x82\xac"); /* its last character does not fit */
	assert_string_equal(out, "ab");
	text_copy(out, sizeof(out), "");
	assert_string_equal(out, "");
}

static const struct {
	const char *in, *out;
} printable_cases[] = {
	{ "plain text ~", "plain text ~" },
	{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
	{ "a\033[1mb\r\n\t\x7f", "a?[1mb????" },
	{ "\xc2\x9b"
	  "1m",
		"?1m" },                      /* C1: escape in one character */
	{ "\xe2\x80\xae", "?" },              /* right to left from here */
	{ "\xe2\x80\xa8\xe2\x80\x8b", "??" }, /* line separator, zero width */
	{ "\xf3\xa0\x81\x81", "?" },          /* tag */
	{ "\xff\xc0\x80\x80", "????" },       /* never UTF-8; too long a form; alone */
	{ "\xe0\x80\xaf", "???" },
	{ "\xed\xa0\x80", "???" },      /* surrogate */
	{ "\xf4\x90\x80\x80", "????" }, /* beyond Unicode */
	{ "a\xe2\x82", "a??" },         /* cut */
	{ "\xc3(", "?(" },
};

static void only_printable_characters_pass(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(printable_cases); i++) {
		char room[64];
		struct text text = TEXT_ON(room);

		text_add_visible(&text, printable_cases[i].in);
		assert_string_equal(room, printable_cases[i].out);
		assert_false(text.cut);
	}
}

static void a_nul_ends_nothing_and_is_not_printable(void **state)
{
	char room[16];
	struct text text = TEXT_ON(room);

	(void)state;
	text_add_printable(&text, "a\0b", 3);
	assert_string_equal(room, "a?b");
}

static void a_character_is_cut_whole(void **state)
{
	char room[5];
	struct text text = TEXT_ON(room);

	(void)state;
	text_add_printable(&text,
		"ab\xe2\x82\xac"
		"c",
		6);
	assert_string_equal(room, "ab");
	assert_true(text.cut);
}

static void columns_are_characters(void **state)
{
	(void)state;
	assert_int_equal(text_columns("", 0), 0);
	assert_int_equal(text_columns("abc", 3), 3);
	assert_int_equal(text_columns("\xc3\xa4\xe2\x82\xac", 5), 2);
	assert_int_equal(text_columns("abc", 2), 2);
	assert_int_equal(text_columns("モデル", strlen("モデル")), 6);
	assert_int_equal(text_columns("模型 한국 🚀", strlen("模型 한국 🚀")), 12);
	assert_int_equal(text_columns("naïve…", strlen("naïve…")), 6);
}

static void a_base_name_is_what_comes_after_the_last_slash(void **state)
{
	(void)state;
	assert_string_equal(text_base_name("python"), "python");
	assert_string_equal(text_base_name("/usr/bin/python"), "python");
	assert_string_equal(text_base_name("./python"), "python");
	assert_string_equal(text_base_name("bin/"), "");
	assert_string_equal(text_base_name(""), "");
}

static void a_reason_is_replaced_and_cut(void **state)
{
	struct why why = WHY_NONE;
	char longer[400];

	(void)state;
	why_set(NULL, "nobody asks");
	why_set(&why, "cannot open '%s'", "/dev/x");
	assert_string_equal(why.text, "cannot open '/dev/x'");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	why_set(&why, "%s", longer);
	assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
	why_set(&why, "short");
	assert_string_equal(why.text, "short");
}

static void a_reason_keeps_its_remedy_after_a_prefix(void **state)
{
	struct why inner = WHY_NONE, outer = WHY_NONE;
	char longer[WHY_SIZE];

	(void)state;
	why_add_remedy(NULL, "x");
	why_set(&inner, "'a; b' is bad");
	assert_int_equal(inner.remedy_at, 0);
	why_add_remedy(&inner, "write %d", 3);
	assert_string_equal(inner.text, "'a; b' is bad; write 3");
	assert_string_equal(inner.text + inner.remedy_at, "write 3");
	why_wrap(NULL, &inner, "x: ");
	why_wrap(&outer, &inner, "%s: ", "file");
	assert_string_equal(outer.text, "file: 'a; b' is bad; write 3");
	assert_string_equal(outer.text + outer.remedy_at, "write 3");
	memset(longer, 'a', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	why_wrap(&outer, &inner, "%s", longer);
	assert_int_equal(outer.remedy_at, 0);
	why_set(&inner, "%s", longer);
	assert_int_equal(inner.remedy_at, 0);
	why_add_remedy(&inner, "no room");
	assert_int_equal(inner.remedy_at, 0);
}

static void items_are_counted(void **state)
{
	(void)state;
	assert_int_equal(text_count_items(""), 0);
	assert_int_equal(text_count_items("0"), 1);
	assert_int_equal(text_count_items("0,1,MIG-a"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_are_counted),
		cmocka_unit_test(text_that_does_not_fit_is_cut_and_marked),
		cmocka_unit_test(a_format_that_does_not_fit_is_cut),
		cmocka_unit_test(a_text_of_one_byte_holds_nothing),
		cmocka_unit_test(a_copy_always_ends),
		cmocka_unit_test(only_printable_characters_pass),
		cmocka_unit_test(a_nul_ends_nothing_and_is_not_printable),
		cmocka_unit_test(a_character_is_cut_whole),
		cmocka_unit_test(columns_are_characters),
		cmocka_unit_test(a_base_name_is_what_comes_after_the_last_slash),
		cmocka_unit_test(a_reason_is_replaced_and_cut),
		cmocka_unit_test(a_reason_keeps_its_remedy_after_a_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
