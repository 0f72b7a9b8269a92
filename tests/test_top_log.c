/* The last lines of a log, for the live view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "scratch.h"
#include "top_log.h"

static struct top_view view;

/* Checks the lines of the view: each of @lines ends with `|`. */
static void assert_lines(const char *lines)
{
	char all[TOP_LOG_LINES * (TOP_LOG_LINE_SIZE + 1) + 1];
	struct text text = TEXT_ON(all);

	for (unsigned i = 0; i < view.log_count; i++)
		text_addf(&text, "%s|", view.log[i]);
	assert_string_equal(all, lines);
}

static void a_log_has_these_last_lines(void **state)
{
	static const struct {
		const char *bytes, *lines;
		bool is_cut;
	} rows[] = {
		{ "", "", false },
		{ "\n\n\n", "", false },
		{ "one", "one|", false },
		{ "one\ntwo\n", "one|two|", false },
		{ "one\n\ntwo\n\n\n", "one||two|", false },
		{ "ne\ntwo\n", "two|", true },
		{ "a line that is not whole", "a line that is not whole|", true },
		{ "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "3|4|5|6|7|8|9|10|", false },
		{ "\n1\n2\n3\n4\n5\n6\n7\n8\n", "1|2|3|4|5|6|7|8|", true },
		/* a progress bar */
		{ "go\r 10%\r 50%", " 50%|", false },
		{ "go\n 10%\r 50%\r\n", "go| 50%|", false },
		{ "a\tb\n", "a b|", false },
		{ "\033[31mred\033[0m\n", "red|", false },
		{ "\033]0;title\a\033[", "?]0;title?|", false },
		{ "bad \xff utf\n", "bad ? utf|", false },
		{ "gr\xc3\xbc\xc3\x9f\x65\n", "gr\xc3\xbc\xc3\x9f\x65|", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		top_log_take(&view, rows[i].bytes, strlen(rows[i].bytes), rows[i].is_cut);
		assert_lines(rows[i].lines);
	}
}

static void a_long_line_is_cut(void **state)
{
	char bytes[3 * TOP_LOG_LINE_SIZE];

	(void)state;
	memset(bytes, 'x', sizeof(bytes));
	top_log_take(&view, bytes, sizeof(bytes), false);
	assert_int_equal(view.log_count, 1);
	assert_int_equal(strlen(view.log[0]), TOP_LOG_LINE_SIZE - 1);
}

static void a_nul_byte_does_not_end_the_line(void **state)
{
	(void)state;
	top_log_take(&view, "a\0b\n", 4, false);
	assert_lines("a?b|");
}

static void only_the_end_of_a_file_is_read(void **state)
{
	struct scratch *s = *state;
	char path[200];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/log", s->path);
	file = fopen(path, "w");
	assert_non_null(file);
	for (int i = 0; i < 100000; i++)
		(void)fprintf(file, "line %d\n", i);
	assert_int_equal(fclose(file), 0);
	top_log_read(&view, path);
	assert_lines("line 99992|line 99993|line 99994|line 99995|line 99996|line 99997|"
		     "line 99998|line 99999|");
}

/* A FIFO at the path of a log must not hold the viewer up. */
static void what_is_no_file_has_no_lines(void **state)
{
	struct scratch *s = *state;
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/fifo", s->path);
	assert_int_equal(mkfifo(path, 0600), 0);
	view.log_count = 1;
	top_log_read(&view, path);
	assert_int_equal(view.log_count, 0);
	top_log_read(&view, s->path);
	assert_int_equal(view.log_count, 0);
	top_log_read(&view, "/proc/nonexistent");
	assert_int_equal(view.log_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_has_these_last_lines),
		cmocka_unit_test(a_long_line_is_cut),
		cmocka_unit_test(a_nul_byte_does_not_end_the_line),
		SCRATCH_TEST(only_the_end_of_a_file_is_read),
		SCRATCH_TEST(what_is_no_file_has_no_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
