/*
 * The forms that everything is shown in: JSON, tables, lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "render_json.h"
#include "render_table.h"
#include "json_valid.h"
#include "page.h"

/* --- JSON -------------------------------------------------------------------------- */

static void a_document_is_indented(void **state)
{
	struct page page;
	struct json json;

	(void)state;
	page_begin(&page);
	json = JSON_ON(page.out);
	json_begin_object(&json);
	json_key(&json, "a");
	json_begin_array(&json);
	json_unsigned(&json, UINT64_MAX);
	json_signed(&json, INT64_MIN);
	json_hundredths(&json, 100);
	json_hundredths(&json, 50);
	json_hundredths(&json, 107);
	json_end(&json);
	json_key(&json, "none");
	json_begin_object(&json);
	json_end(&json);
	json_key(&json, "b");
	json_bool(&json, true);
	json_key(&json, "c");
	json_null(&json);
	json_end(&json);
	json_finish(&json);
	page_is(&page,
		"{\n  \"a\": [\n    18446744073709551615,\n"
		"    -9223372036854775808,\n    1,\n    0.5,\n    1.07\n  ],\n  \"none\": {},\n"
		"  \"b\": true,\n  \"c\": null\n}\n");
}

static const struct {
	const char *in, *out;
} strings[] = {
	{ "", "\"\"\n" },
	{ "a/b", "\"a/b\"\n" },
	{ "\"\\", "\"\\\"\\\\\"\n" },
	{ "?", "\"?\"\n" },
	{ "\n\t\033[0m\177", "\"\\u000a\\u0009\\u001b[0m\\u007f\"\n" },
	{ "\xc3\xa4\xf0\x9f\x98\x80", "\"\xc3\xa4\xf0\x9f\x98\x80\"\n" },
	{ "\xc2\x9b", "\"\\u009b\"\n" },
	{ "\xe2\x80\xae", "\"\\u202e\"\n" },
	{ "\xf3\xa0\x81\x81", "\"\\udb40\\udc41\"\n" },
	{ "\xff-\xc3", "\"\\ufffd-\\ufffd\"\n" },
	{ "\xc3(", "\"\\ufffd(\"\n" },
	{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"\n" },
	{ "\xc0\x80", "\"\\ufffd\\ufffd\"\n" },
	{ "\xe2\x82z", "\"\\ufffd\\ufffdz\"\n" },
};

static void strings_are_escaped(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
		struct page page;
		struct json json;

		page_begin(&page);
		json = JSON_ON(page.out);
		json_text(&json, strings[i].in);
		json_finish(&json);
		page_is(&page, strings[i].out);
	}
}

static void every_two_bytes_make_a_valid_string(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 0x10000; i++) {
		const char bytes[] = { (char)(i >> 8), (char)i };
		struct page page;
		struct json json;
		size_t at;

		page_begin(&page);
		json = JSON_ON(page.out);
		json_bytes(&json, bytes, sizeof(bytes));
		json_finish(&json);
		(void)fflush(page.out);
		if (!json_is_valid(page.text, page.size, &at))
			fail_msg("%04x becomes %s", i, page.text);
		page_end(&page);
	}
}

static const char *const no_json[] = { "", "{", "[1,]", "{\"a\"}", "{\"a\":1,}", "01",
	"1.", "-", "+1", "nul", "\"", "\"\n\"", "\"\x7f\"", "\"\xc2\x9b\"", "\"\xff\"",
	"\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "1 2", "{1:2}", "[1 2]",
	"'a'", "\"\xed\xa0\x80\"", "[[1]", "{} x" };
static const char *const good_json[] = { "0", " -1.5e+3 ", "[]", "{ }", "[1, 2]",
	"{\"a\":{\"b\":[null,true,false]}}", "\"\\u00e4\\ud83d\\ude00\\n\"",
	"\"\xc3\xa4\"" };

static void the_json_checker_tells_good_from_bad(void **state)
{
	size_t at;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(no_json); i++)
		if (json_is_valid(no_json[i], strlen(no_json[i]), &at))
			fail_msg("taken for JSON: %s", no_json[i]);
	for (size_t i = 0; i < ARRAY_SIZE(good_json); i++)
		if (!json_is_valid(good_json[i], strlen(good_json[i]), &at))
			fail_msg("not taken for JSON: %s", good_json[i]);
}

/* --- tables ------------------------------------------------------------------------ */

static const struct table_column three[] = {
	{ .title = "N", .is_right = true },
	{ .title = "MODEL", .least = 6 },
	{ .title = "OPTION", .is_optional = true },
	{ .title = "COMMAND", .least = 8 },
};

static void fill_three(struct table *table)
{
	*table = TABLE_ON(three);
	table_row(table);
	table_put(table, 0, "1");
	table_put(table, 1, "NVIDIA A100");
	table_put(table, 3, "python train.py");
	table_row(table);
	table_putf(table, 0, "%d", 10);
	table_tint(table, 1, TINT_RED);
	table_put(table, 3, "x");
}

static void print_three(struct page *page, unsigned width, bool has_colour)
{
	struct table_style style = { .width = width, .has_colour = has_colour };
	struct table table;

	page_begin(page);
	fill_three(&table);
	assert_int_equal(table_print(&table, &style, page->out), 0);
	table_release(&table);
}

static const struct {
	unsigned width;
	const char *text;
} fittings[] = {
	{ 0, " N  MODEL        COMMAND\n"
	     " 1  NVIDIA A100  python train.py\n"
	     "10  -            x\n" },
	{ 80, " N  MODEL        COMMAND\n"
	      " 1  NVIDIA A100  python train.py\n"
	      "10  -            x\n" },
	{ 27, " N  MODEL        COMMAND\n"
	      " 1  NVIDIA A100  python tr\xe2\x80\xa6\n"
	      "10  -            x\n" },
	{ 20, " N  MODEL   COMMAND\n"
	      " 1  NVIDI\xe2\x80\xa6  python \xe2\x80\xa6\n"
	      "10  -       x\n" },
	{ 14, " N  MODEL   C\xe2\x80\xa6\n"
	      " 1  NVIDI\xe2\x80\xa6  p\xe2\x80\xa6\n"
	      "10  -       x\n" },
	{ 11, " N  MODEL\n"
	      " 1  NVIDI\xe2\x80\xa6\n"
	      "10  -\n" },
};

/* Blanks at the ends of lines are nothing to see. */
static void strip_line_ends(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		while (*from == '\n' && to > text && to[-1] == ' ')
			to--;
		*to++ = *from;
	}
	*to = '\0';
}

static void tables_fit_the_width(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(fittings); i++) {
		struct page page;

		print_three(&page, fittings[i].width, false);
		(void)fflush(page.out);
		strip_line_ends(page.text);
		if (strcmp(page.text, fittings[i].text) != 0)
			fail_msg("in %u columns:\n%s", fittings[i].width, page.text);
		page_end(&page);
	}
}

/* --- columns with ranks ------------------------------------------------------------ */

static const struct table_column ranked[] = {
	{ .title = "ID" },
	{ .title = "LAST", .rank = 3 },
	{ .title = "FIRST", .rank = 2 },
	{ .title = "WHY", .is_folded = true, .rank = 1 },
	{ .title = "COMMAND", .good = 8, .least = 4 },
};

static const struct {
	unsigned width;
	const char *text;
} rankings[] = {
	{ 0, "ID  LAST  FIRST  WHY                 COMMAND\n"
	     "1   a     bb     because it is so    a long command\n"
	     "2   a     bb     …and not otherwise  c\n" },
	{ 45, "ID  LAST  FIRST  WHY                 COMMAND\n"
	      "1   a     bb     because it is so    a long …\n"
	      "2   a     bb     …and not otherwise  c\n" },
	{ 44, "ID  FIRST  WHY                 COMMAND\n"
	      "1   bb     because it is so    a long comma…\n"
	      "2   bb     …and not otherwise  c\n" },
	/* what folds leaves its room to the others */
	{ 30, "ID  LAST  FIRST  COMMAND\n"
	      "1   a     bb     a long comma…\n    because it is so\n"
	      "2   a     bb     c\n    …and not otherwise\n" },
	{ 19, "ID  FIRST  COMMAND\n"
	      "1   bb     a long …\n    because it is\n    so\n"
	      "2   bb     c\n    …and not\n    otherwise\n" },
	{ 18, "ID  COMMAND\n"
	      "1   a long command\n    because it is\n    so\n"
	      "2   c\n    …and not\n    otherwise\n" },
	{ 9, "ID  COMM…\n"
	     "1   a lo…\n    becau\n    se it\n    is so\n"
	     "2   c\n    …and\n    not\n    other\n    wise\n" },
	{ 8, "ID  COM…\n1   a l…\nbecause…\n2   c\n…and no…\n" },
};

static void print_ranked(struct page *page, unsigned width)
{
	struct table_style style = { .width = width };
	struct table table = TABLE_ON(ranked);

	page_begin(page);
	for (unsigned row = 0; row < 2; row++) {
		table_row(&table);
		table_putf(&table, 0, "%u", row + 1);
		table_put(&table, 1, "a");
		table_put(&table, 2, "bb");
		table_put(&table, 3, row ? "…and not otherwise" : "because it is so");
		table_put(&table, 4, row ? "c" : "a long command");
	}
	assert_int_equal(table_print(&table, &style, page->out), 0);
	table_release(&table);
	(void)fflush(page->out);
}

static void columns_are_dropped_by_rank_and_folded(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rankings); i++) {
		struct page page;

		print_ranked(&page, rankings[i].width);
		strip_line_ends(page.text);
		if (strcmp(page.text, rankings[i].text) != 0)
			fail_msg("in %u columns:\n%s", rankings[i].width, page.text);
		page_end(&page);
	}
}

/* What a table is in a width; 0: unlimited. */
struct width_case {
	unsigned width;
	const char *text;
};

/* Checks the table with two columns and these rows in each of the widths. */
static void check_widths(const struct table_column columns[2],
	const char *const rows[][2], size_t row_count, const struct width_case *cases,
	size_t case_count)
{
	for (size_t i = 0; i < case_count; i++) {
		struct table_style style = { .width = cases[i].width };
		struct table table = { .columns = columns, .column_count = 2 };
		struct page page;

		page_begin(&page);
		for (size_t row = 0; row < row_count; row++) {
			table_row(&table);
			table_put(&table, 0, rows[row][0]);
			table_put(&table, 1, rows[row][1]);
		}
		assert_int_equal(table_print(&table, &style, page.out), 0);
		table_release(&table);
		page_is(&page, cases[i].text);
	}
}

static void columns_are_cut_to_their_good_widths_first(void **state)
{
	static const struct table_column two[] = {
		{ .title = "NAME", .good = 8, .least = 4 },
		{ .title = "COMMAND", .good = 10, .least = 4 },
	};
	static const char *const rows[][2] = { { "abcdefghijkl", "abcdefghijklmnop" } };
	static const struct width_case cases[] = {
		{ 24, "NAME          COMMAND\nabcdefghijkl  abcdefghi…\n" },
		{ 20, "NAME      COMMAND\nabcdefg…  abcdefghi…\n" },
		{ 16, "NAME      COMMA…\nabcdefg…  abcde…\n" },
	};

	(void)state;
	check_widths(two, rows, ARRAY_SIZE(rows), cases, ARRAY_SIZE(cases));
}

static void wide_characters_take_two_columns(void **state)
{
	static const struct table_column two[] = {
		{ .title = "NAME", .least = 4 },
		{ .title = "COMMAND" },
	};
	static const char *const rows[][2] = { { "模型ab", "x" }, { "b", "y" } };
	static const struct width_case cases[] = {
		{ 0, "NAME    COMMAND\n模型ab  x\nb       y\n" },
		{ 14, "NAME   COMMAND\n模型…  x\nb      y\n" },
		{ 13, "NAME  COMMAND\n模…   x\nb     y\n" },
	};

	(void)state;
	check_widths(two, rows, ARRAY_SIZE(rows), cases, ARRAY_SIZE(cases));
}

static void a_cell_below_a_text_is_left_blank(void **state)
{
	struct table_style style = { .width = 0 };
	struct table table = TABLE_ON(ranked);
	struct page page;

	(void)state;
	page_begin(&page);
	table_row(&table);
	table_put(&table, 0, "1");
	table_row(&table);
	table_blank(&table, 0);
	table_blank(&table, 4);
	assert_int_equal(table_print(&table, &style, page.out), 0);
	table_release(&table);
	page_is(&page, "ID  LAST  FIRST  WHY  COMMAND\n"
		       "1   -     -      -    -\n"
		       "    -     -      -    -\n");
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	(void)state;
	for (unsigned width = 1; width < 60; width++) {
		struct page page;

		print_three(&page, width, false);
		(void)fflush(page.out);
		for (char *line = page.text; *line; line += strcspn(line, "\n") + 1)
			assert_true(text_columns(line, strcspn(line, "\n")) <= width);
		page_end(&page);
		print_ranked(&page, width);
		for (char *line = page.text; *line; line += strcspn(line, "\n") + 1)
			assert_true(text_columns(line, strcspn(line, "\n")) <= width);
		page_end(&page);
	}
}

static void colours_are_used_only_if_the_style_has_them(void **state)
{
	struct page page;

	(void)state;
	print_three(&page, 80, false);
	page_has_not(&page, "\033");
	page_end(&page);
	print_three(&page, 80, true);
	page_has(&page, "\033[1mMODEL\033[0m");
	page_has(&page, "\033[31m-\033[0m");
	page_end(&page);
}

static void cells_hold_no_control_characters(void **state)
{
	struct table_style style = { .width = 0 };
	struct table table = TABLE_ON(three);
	struct page page;

	(void)state;
	page_begin(&page);
	table_row(&table);
	table_put(&table, 3, "\033[2Jrm\r\n\xff");
	assert_int_equal(table_print(&table, &style, page.out), 0);
	table_release(&table);
	page_is(&page, "N  MODEL  COMMAND\n-  -      ?[2Jrm???\n");
}

static void lines_are_wrapped(void **state)
{
	struct table_style style = { .width = 20 };
	struct page page;

	(void)state;
	page_begin(&page);
	line_print("GPU 0,1: paused by alice: the fan \033 is broken", &style, page.out);
	page_is(&page, "GPU 0,1: paused by\n    alice: the fan ?\n    is broken\n");
	style.width = 0;
	page_begin(&page);
	line_print("GPU 0,1: paused by alice: the fan is broken", &style, page.out);
	page_is(&page, "GPU 0,1: paused by alice: the fan is broken\n");
	style.width = 30;
	page_begin(&page);
	line_print_labelled("why", "GPU 0,1: paused by alice: \033", &style, page.out);
	page_is(&page, "why        GPU 0,1: paused by\n           alice: ?\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_document_is_indented),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(every_two_bytes_make_a_valid_string),
		cmocka_unit_test(the_json_checker_tells_good_from_bad),
		cmocka_unit_test(tables_fit_the_width),
		cmocka_unit_test(columns_are_dropped_by_rank_and_folded),
		cmocka_unit_test(columns_are_cut_to_their_good_widths_first),
		cmocka_unit_test(wide_characters_take_two_columns),
		cmocka_unit_test(a_cell_below_a_text_is_left_blank),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(colours_are_used_only_if_the_style_has_them),
		cmocka_unit_test(cells_hold_no_control_characters),
		cmocka_unit_test(lines_are_wrapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
