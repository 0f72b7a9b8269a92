/*
 * The indices of arrays, the ids of their tasks, and the names of their files.  What sbatch 22.05
 * makes of the lists was tried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "array_words.h"

/* Writes the indices of @list, with its step and limit, to @out. */
static void describe(const struct array_list *list, struct text *out)
{
	for (unsigned i = 0; i < list->count; i++)
		text_addf(out, "%s%u", i ? "," : "", list->indices[i]);
	text_addf(out, ":%u%%%u", list->step, list->limit);
}

static void a_list_has_its_indices(void **state)
{
	static const struct {
		const char *text, *expected; /* NULL: refused */
	} rows[] = {
		{ "0", "0:1%0" },
		{ "0-3", "0,1,2,3:1%0" },
		{ "0-9%3", "0,1,2,3,4,5,6,7,8,9:1%3" },
		{ "1,3,5-9:2", "1,3,5,7,9:2%0" },
		{ "3,1,2%2", "1,2,3:1%2" },
		{ "1-3,2-4", "1,2,3,4:1%0" },
		{ "2-10:4,3", "2,3,6,10:4%0" },
		{ "0-15:4,20", "0,4,8,12,20:4%0" },
		{ "01-03", "1,2,3:1%0" },
		{ "[1-3]", "1,2,3:1%0" },
		{ "[1-3]%1", "1,2,3:1%1" },
		{ "1-3%0", "1,2,3:1%0" },
		{ "4000000", "4000000:1%0" },
		{ "", NULL },
		{ "a", NULL },
		{ "-1", NULL },
		{ "5-1", NULL },
		{ "1--2", NULL },
		{ "1-2-3", NULL },
		{ "1-5:0", NULL },
		{ "1-9:3:1", NULL },
		{ "1,,2", NULL },
		{ ",1", NULL },
		{ "1,", NULL },
		{ "1 ,2", NULL },
		{ "1%", NULL },
		{ "1%-1", NULL },
		{ "1%2%3", NULL },
		{ "[1-3", NULL },
		{ "1-3]", NULL },
		{ "4000001", NULL },
		{ "0-1000000", NULL },
		{ "0-1000", NULL },
		{ "99999999999999999999", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char is[128] = "";
		struct text out = TEXT_ON(is);
		struct why why = WHY_NONE;
		struct array_list list;
		int r = array_list_read(rows[i].text, &list, &why);

		assert_int_equal(r, rows[i].expected ? 0 : -EINVAL);
		assert_int_equal(why.text[0] != '\0', r < 0);
		if (r < 0)
			continue;
		describe(&list, &out);
		assert_string_equal(is, rows[i].expected);
	}
}

static void a_thousand_tasks_are_the_most(void **state)
{
	struct array_list list;

	(void)state;
	assert_int_equal(array_list_read("1-1000", &list, NULL), 0);
	assert_int_equal(list.count, 1000);
	assert_int_equal(array_list_find(&list, 1000), 999);
	assert_int_equal(array_list_find(&list, 0), -1);
	assert_int_equal(array_list_read("1-1000,1-1000", &list, NULL), 0);
	assert_int_equal(list.count, 1000);
}

static void an_id_names_tasks(void **state)
{
	static const struct {
		const char *text, *expected; /* NULL: none */
	} rows[] = {
		{ "17_3", "17/3:1%0" },
		{ "17_[1-3,8]", "17/1,2,3,8:1%0" },
		{ "17", NULL },
		{ "_3", NULL },
		{ "17_", NULL },
		{ "17_x", NULL },
		{ "17_1-3", NULL },
		{ "17_[1-3]%2", NULL },
		{ "a_3", NULL },
		{ "2024_run", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char is[64] = "";
		struct text out = TEXT_ON(is);
		struct array_list list;
		uint64_t array;
		bool has = array_list_read_id(
			rows[i].text, strlen(rows[i].text), &array, &list);

		assert_int_equal(has, rows[i].expected != NULL);
		if (!has)
			continue;
		text_addf(&out, "%u/", (unsigned)array);
		describe(&list, &out);
		assert_string_equal(is, rows[i].expected);
	}
}

static void a_file_name_gets_the_numbers(void **state)
{
	static const struct {
		const char *pattern, *expected;
	} rows[] = {
		{ "slurm-%A_%a.out", "slurm-17_3.out" },
		{ "%3a %5A", "003 00017" },
		{ "%0a", "3" },
		{ "%x.%j", "50%%_x.%j" },
		{ "%%a %u", "%%a %u" },
		{ "100%", "100%" },
		{ "none", "none" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char is[64] = "";
		struct text out = TEXT_ON(is);

		array_words_expand(rows[i].pattern, 17, 3, "50%_x", &out);
		assert_string_equal(is, rows[i].expected);
	}
}

static void a_task_has_its_words(void **state)
{
	static const char *const expected[] = { "gpulease", "--submit", "--name=17_5",
		"--output=o-5-train", "--", "slurm", "script", "--array=17,5,2,3,5,2,REC",
		"--name=train", "--", "COPY", "--output=%a" };
	static char gpulease[] = "gpulease", submit[] = "--submit",
		    name[] = "--name=train", output[] = "--output=o-%a-%x", end[] = "--",
		    slurm[] = "slurm", part[] = "script", copy[] = "COPY",
		    own[] = "--output=%a";
	char *words[] = { gpulease, submit, name, output, end, slurm, part, name, end,
		copy, own, NULL };
	struct array_list list;
	struct array_words from = {
		.words = words, .array = 17, .record = "REC", .list = &list
	};
	char **made;
	size_t i = 0;

	(void)state;
	assert_int_equal(array_list_read("3-5:2", &list, NULL), 0);
	made = array_words_make(&from, 5);
	for (; i < ARRAY_SIZE(expected); i++)
		assert_string_equal(made[i], expected[i]);
	assert_null(made[i]);
	for (i = 0; made[i]; i++) {
		bool is_own = true;

		for (size_t j = 0; words[j]; j++)
			is_own = is_own && made[i] != words[j];
		if (is_own)
			free(made[i]);
	}
	free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_its_indices),
		cmocka_unit_test(a_thousand_tasks_are_the_most),
		cmocka_unit_test(an_id_names_tasks),
		cmocka_unit_test(a_file_name_gets_the_numbers),
		cmocka_unit_test(a_task_has_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
