/* What sbatch makes of --dependency and of abbreviated options.  sbatch 22.05 was tried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "dependency_list.h"
#include "sbatch_abbreviation.h"

static void a_dependency_is_split(void **state)
{
	static const struct {
		const char *value, *passed, *not_ok; /* NULL: refused */
	} rows[] = {
		{ "singleton", "singleton", "" },
		{ "afterok:1:2,afterany:3", "afterok:1:2,afterany:3", "" },
		{ "afternotok:1", "afterany:1", "1" },
		{ "afternotok:1:2,afterok:3,afternotok:4",
			"afterany:1:2,afterok:3,afterany:4", "1,2,4" },
		/* gpulease refuses these */
		{ "afternotok:", "afterany:", "" },
		{ "other:1", "other:1", "" },
		{ "", "", "" },
		{ "afterok:1?afterok:2", NULL, NULL },
		{ "aftercorr:1", NULL, NULL },
		{ "after:1:2,afternotok:3", "after:1:2,afterany:3", "3" },
		{ "afterok:17_3,afternotok:17_4:5", "afterok:17_3,afterany:17_4:5",
			"17_4,5" },
		{ "after:1+5", NULL, NULL },
		{ "afterok:1,after:1:2+0", NULL, NULL },
		{ "afterok:1:2:3:4:5:6,after:1:2:3,afterany:4:5,singleton,afternotok:6",
			"afterok:1:2:3:4:5:6,after:1:2:3,afterany:4:5,singleton,"
			"afterany:6",
			"6" },
		{ "afterok:1:2:3,singleton,afterok:4:5:6:7", NULL, NULL },
		{ "after:1:2:3,afterany:4:5,afternotok:6:7", NULL, NULL },
		{ "afterok:1,expand:2", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct dependency_list list;
		struct why why = WHY_NONE;
		int r = dependency_list_read(rows[i].value, &list, &why);

		assert_int_equal(r, rows[i].passed ? 0 : -EINVAL);
		assert_int_equal(why.text[0] != '\0', r < 0);
		if (r < 0)
			continue;
		assert_string_equal(list.passed, rows[i].passed);
		assert_string_equal(list.not_ok, rows[i].not_ok);
	}
}

static void an_abbreviation_is_written_out(void **state)
{
	static const struct option_def table[] = {
		{ .kind = OPTION_TEXT, .name = "time", .metavar = "T", .letter = 't' },
		{ .kind = OPTION_TEXT, .name = "time-min", .metavar = "T" },
		{ .kind = OPTION_NOTHING, .name = "no-requeue" },
		{ .kind = OPTION_NOTHING, .name = "verbose", .letter = 'v' },
		{ .kind = OPTION_NOTHING, .name = "nice", .metavar = "[N]" },
		{ .kind = OPTION_END },
	};
	static const struct {
		const char *words[5], *expected[5]; /* NULL: ambiguous */
	} rows[] = {
		{ { "--time=1", "--time-m=2", "x" },
			{ "--time=1", "--time-min=2", "x" } },
		{ { "--time-m", "--no", "--no" },
			{ "--time-min", "--no", "--no-requeue" } },
		{ { "-t", "--no", "--no_r" }, { "-t", "--no", "--no-requeue" } },
		{ { "-vt", "--no", "--verb" }, { "-vt", "--no", "--verbose" } },
		{ { "-t1", "--verb" }, { "-t1", "--verbose" } },
		{ { "--nic", "--verb" }, { "--nice", "--verbose" } },
		{ { "script", "--verb" }, { "script", "--verb" } },
		{ { "--", "--verb" }, { "--", "--verb" } },
		{ { "-", "--verb" }, { "-", "--verb" } },
		{ { "--unknown", "--verb" }, { "--unknown", "--verbose" } },
		{ { "--time-m" }, { "--time-min" } },
		{ { "--tim=1" }, { NULL } },
		{ { "--n" }, { NULL } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		static char name[] = "sbatch";
		char *argv[7] = { name }, words[5][16];
		struct why why = WHY_NONE;
		int r;

		for (size_t j = 0; rows[i].words[j]; j++)
			text_copy(argv[j + 1] = words[j], sizeof(words[j]),
				rows[i].words[j]);
		r = sbatch_abbreviation_expand(table, argv, &why);
		assert_int_equal(r, rows[i].expected[0] ? 0 : -EINVAL);
		for (size_t j = 0; r == 0 && rows[i].words[j]; j++)
			assert_string_equal(argv[j + 1], rows[i].expected[j]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dependency_is_split),
		cmocka_unit_test(an_abbreviation_is_written_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
