/* Lines of several tasks: whole lines, labels, parts of long lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "task_lines.h"

/* Takes @parts, the last as the last, and compares what is passed on after each. */
static void check(const char *label, const char *const parts[][2], size_t count)
{
	struct task_lines lines = { .label = "" };

	(void)snprintf(lines.label, sizeof(lines.label), "%s", label);
	for (size_t i = 0; i < count; i++) {
		struct bytes out = { .at = NULL };

		assert_int_equal(task_lines_take(&lines, parts[i][0], strlen(parts[i][0]),
					 i + 1 == count, &out),
			0);
		assert_int_equal(out.used, strlen(parts[i][1]));
		assert_memory_equal(out.at ? out.at : "", parts[i][1], out.used);
		free(out.at);
	}
	assert_int_equal(lines.rest.used, 0);
	free(lines.rest.at);
}

static void only_whole_lines_are_passed_on(void **state)
{
	static const char *const parts[][2] = { { "a", "" }, { "b\nc", "ab\n" },
		{ "\n\nd", "c\n\n" }, { "", "d" } };
	static const char *const progress[][2] = { { "10%\r20", "10%\r" },
		{ "%\r", "20%\r" }, { "", "" } };

	(void)state;
	check("", parts, ARRAY_SIZE(parts));
	check("", progress, ARRAY_SIZE(progress));
}

static void each_line_has_its_label(void **state)
{
	static const char *const parts[][2] = { { "a\nb", "1: a\n" }, { "\n", "1: b\n" },
		{ "c\r\nd\r", "1: c\r\n1: d\r" }, { "", "" } };

	(void)state;
	check("1: ", parts, ARRAY_SIZE(parts));
}

static void a_last_line_with_a_label_gets_an_end(void **state)
{
	static const char *const parts[][2] = { { "a\nb", "1: a\n" }, { "", "1: b\n" } };
	static const char *const whole[][2] = { { "a\n", "1: a\n" }, { "", "" } };

	(void)state;
	check("1: ", parts, ARRAY_SIZE(parts));
	check("1: ", whole, ARRAY_SIZE(whole));
}

static void labels_are_of_one_width(void **state)
{
	static const struct {
		unsigned task, count;
		const char *label;
	} rows[] = { { 0, 1, "0: " }, { 9, 10, "9: " }, { 9, 11, " 9: " },
		{ 10, 11, "10: " }, { 7, 512, "  7: " } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct task_lines lines = { .label = "" };

		task_lines_label(&lines, rows[i].task, rows[i].count);
		assert_string_equal(lines.label, rows[i].label);
	}
}

static void a_line_without_end_is_passed_on_in_parts(void **state)
{
	struct task_lines lines = { .label = "0: " };
	struct bytes out = { .at = NULL };
	static char part[LINE_PART_MAX / 2];

	(void)state;
	memset(part, 'x', sizeof(part));
	assert_int_equal(task_lines_take(&lines, part, sizeof(part), false, &out), 0);
	assert_int_equal(out.used, 0);
	assert_int_equal(task_lines_take(&lines, part, sizeof(part), false, &out), 0);
	assert_int_equal(out.used, LINE_PART_MAX + 3);
	assert_int_equal(task_lines_take(&lines, "y\nz\n", 4, false, &out), 0);
	assert_int_equal(out.used, LINE_PART_MAX + 3 + 2 + 3 + 2);
	assert_memory_equal(out.at + LINE_PART_MAX + 3, "y\n0: z\n", 7);
	free(out.at);
	free(lines.rest.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_whole_lines_are_passed_on),
		cmocka_unit_test(each_line_has_its_label),
		cmocka_unit_test(a_last_line_with_a_label_gets_an_end),
		cmocka_unit_test(labels_are_of_one_width),
		cmocka_unit_test(a_line_without_end_is_passed_on_in_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
