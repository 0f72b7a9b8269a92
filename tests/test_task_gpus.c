/* Which GPUs a task sees, and how the ends of tasks are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "task_end.h"
#include "task_gpus.h"

static void a_task_sees_its_gpus(void **state)
{
	static const struct {
		const char *bind, *gpus;
		unsigned task;
		const char *expected; /* NULL: refused */
	} rows[] = {
		{ NULL, "0,1,2,3", 1, "0,1,2,3" },
		{ NULL, "", 1, "" },
		{ "none", "4,5", 1, "4,5" },
		{ "closest", "4,5", 1, "4,5" },
		{ "v,closest", "4,5", 1, "4,5" },
		{ "per_task:1", "4,5", 1, "5" },
		{ "per_task:2", "4,5,6,7", 1, "6,7" },
		{ "per_task:0", "", 1, "" },
		{ "per_task:2", "4,5,6", 1, NULL },
		{ "single:1", "4,5", 0, "4" },
		{ "single:1", "4,5", 1, "5" },
		{ "single:1", "4,5", 2, "4" },
		{ "single:2", "4,5", 1, "4" },
		{ "verbose,single:2", "4,5", 2, "5" },
		{ "single:2", "", 2, "" },
		{ "single:0", "4,5", 2, NULL },
		{ "map_gpu:1,3", "4,5,6,7", 0, "5" },
		{ "map_gpu:1,3", "4,5,6,7", 1, "7" },
		{ "map_gpu:1,3", "4,5,6,7", 2, "5" },
		{ "map_gpu:4", "4,5,6,7", 0, NULL },
		{ "map_gpu:", "4,5", 0, NULL },
		{ "map_gpu:a", "4,5", 0, NULL },
		{ "mask_gpu:0x1", "4,5", 0, NULL },
		{ "per_task:MIG", "4,5", 0, NULL },
		{ "per_task:1", "MIG-a,MIG-b", 1, "MIG-b" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char is[64] = "";
		struct text out = TEXT_ON(is);
		struct why why = WHY_NONE;
		int r = task_gpus(rows[i].bind, rows[i].gpus, rows[i].task, &out, &why);

		if (!rows[i].expected) {
			assert_int_equal(r, -EINVAL);
			assert_true(why.text[0] != '\0');
			continue;
		}
		assert_int_equal(r, 0);
		assert_string_equal(is, rows[i].expected);
	}
}

static void ends_are_told_in_words(void **state)
{
	static const bool some[] = { true, true, false, true, true, true, false, true },
			  one[] = { false, true };
	char words[64] = "";
	struct text out = TEXT_ON(words);

	(void)state;
	task_end_list(some, ARRAY_SIZE(some), &out);
	assert_string_equal(words, "tasks 0-1,3-5,7");
	out = TEXT_ON(words);
	task_end_list(one, ARRAY_SIZE(one), &out);
	text_add(&out, ": ");
	task_end_describe(3 << 8, &out);
	text_add(&out, ", ");
	task_end_describe(15, &out);
	assert_string_equal(words, "task 1: exit status 3, ended by SIGTERM");
	assert_int_equal(task_end_status(3 << 8), 3);
	assert_int_equal(task_end_status(9), 137);
	assert_int_equal(task_end_status(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_task_sees_its_gpus),
		cmocka_unit_test(ends_are_told_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
