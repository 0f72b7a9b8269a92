#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "childenv.h"

#define ENTRY(text) ((char *)(text)) /* which nobody writes to */

static void check_made(char *const from[], const char *without,
	const struct childenv_change *changes, size_t count, const char *const *wanted)
{
	char **made = NULL;

	assert_int_equal(childenv_make(from, without, changes, count, &made), 0);
	for (size_t i = 0; wanted[i]; i++) {
		assert_non_null(made[i]);
		assert_string_equal(made[i], wanted[i]);
		if (!wanted[i + 1])
			assert_null(made[i + 1]);
	}
	if (!wanted[0])
		assert_null(made[0]);
	free(made);
}

static void what_is_not_named_passes_as_it_is(void **state)
{
	char *const from[] = { ENTRY("A=1"), ENTRY("B="), ENTRY("without equals sign"),
		ENTRY("=x"), ENTRY("C=a=b"), NULL };
	const char *const wanted[] = { "A=1", "B=", "without equals sign", "=x", "C=a=b",
		NULL };

	(void)state;
	check_made(from, "SLURM_", NULL, 0, wanted);
}

static void changes_replace_add_and_remove(void **state)
{
	static const struct childenv_change changes[] = { { "B", "two" }, { "C", NULL },
		{ "NEW", "" }, { "NONE", NULL } };
	char *const from[] = { ENTRY("A=1"), ENTRY("B=1"), ENTRY("C=1"), ENTRY("BB=1"),
		ENTRY("B=again"), NULL };
	const char *const wanted[] = { "A=1", "BB=1", "B=two", "NEW=", NULL };

	(void)state;
	check_made(from, "SLURM_", changes, ARRAY_SIZE(changes), wanted);
}

static void those_with_the_prefix_are_left_out(void **state)
{
	static const struct childenv_change changes[] = { { "SLURM_MINE", "1" } };
	char *const from[] = { ENTRY("SLURM_JOB_ID=7"), ENTRY("SLURM="),
		ENTRY("A=SLURM_"), ENTRY("SLURM_=1"), ENTRY("slurm_x=1"), NULL };
	const char *const wanted[] = { "SLURM=", "A=SLURM_", "slurm_x=1", "SLURM_MINE=1",
		NULL };

	(void)state;
	check_made(from, "SLURM_", changes, ARRAY_SIZE(changes), wanted);
}

static void an_empty_environment_is_one_too(void **state)
{
	char *const from[] = { NULL };
	const char *const wanted[] = { NULL };

	(void)state;
	check_made(from, "SLURM_", NULL, 0, wanted);
}

static void many_and_long_values_fit(void **state)
{
	enum { MANY = 300 };
	static char entries[MANY][32], values[3][5000];
	static char *from[MANY + 1];
	struct childenv_change changes[3] = { { "X", values[0] }, { "Y", values[1] },
		{ "Z", values[2] } };
	char **made = NULL;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		(void)snprintf(entries[i], sizeof(entries[i]), "V%zu=%zu", i, i);
		from[i] = entries[i];
	}
	for (size_t i = 0; i < 3; i++)
		memset(values[i], 'a' + (int)i, sizeof(values[i]) - 1);
	assert_int_equal(childenv_make(from, "SLURM_", changes, 3, &made), 0);
	for (size_t i = 0; i < MANY; i++)
		assert_string_equal(made[i], entries[i]);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(made[MANY + i][0], changes[i].name[0]);
		assert_string_equal(made[MANY + i] + 2, values[i]);
	}
	assert_null(made[MANY + 3]);
	free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_named_passes_as_it_is),
		cmocka_unit_test(changes_replace_add_and_remove),
		cmocka_unit_test(those_with_the_prefix_are_left_out),
		cmocka_unit_test(an_empty_environment_is_one_too),
		cmocka_unit_test(many_and_long_values_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
