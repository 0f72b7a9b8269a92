#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <cmocka.h>

#include "childenv.h"

#define ENTRY(text) ((char *)(text)) /* never written to */

static const char *const slurm[] = { "SLURM_*", NULL };
static const char *const *kept; /* for all environments that are made */

static void check_made_of(char *const from[], const char *const without[],
	const char *list, const struct childenv_change *changes, size_t count,
	const char *const *wanted)
{
	char **made = NULL;
	size_t i = 0;

	assert_int_equal(
		childenv_make(from, without, kept, list, changes, count, &made), 0);
	for (; wanted[i]; i++) {
		assert_non_null(made[i]);
		assert_string_equal(made[i], wanted[i]);
	}
	assert_null(made[i]);
	free(made);
}

static void check_made(char *const from[], const char *const without[],
	const struct childenv_change *changes, size_t count, const char *const *wanted)
{
	check_made_of(from, without, NULL, changes, count, wanted);
}

static void other_variables_pass_unchanged(void **state)
{
	char *const from[] = { ENTRY("A=1"), ENTRY("B="), ENTRY("without equals sign"),
		ENTRY("=x"), ENTRY("C=a=b"), NULL };
	const char *const wanted[] = { "A=1", "B=", "without equals sign", "=x", "C=a=b",
		NULL };

	(void)state;
	check_made(from, slurm, NULL, 0, wanted);
}

static void changes_replace_add_and_remove(void **state)
{
	static const struct childenv_change changes[] = { { "B", "two", false },
		{ "C", NULL, false }, { "NEW", "", false }, { "NONE", NULL, false } };
	char *const from[] = { ENTRY("A=1"), ENTRY("B=1"), ENTRY("C=1"), ENTRY("BB=1"),
		ENTRY("B=again"), NULL };
	const char *const wanted[] = { "A=1", "BB=1", "B=two", "NEW=", NULL };

	(void)state;
	check_made(from, slurm, changes, ARRAY_SIZE(changes), wanted);
}

static void a_default_gives_way_to_a_value_of_the_user(void **state)
{
	static const struct childenv_change changes[] = { { "A", "own", false },
		{ "B", "own", true } };
	char *const with[] = { ENTRY("A=1"), ENTRY("B="), ENTRY("BB=1"), NULL };
	char *const without[] = { ENTRY("BB=1"), NULL };
	const char *const kept_one[] = { "B=", "BB=1", "A=own", NULL };
	const char *const set[] = { "BB=1", "A=own", "B=own", NULL };
	const char *const listed[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "B=x",
		"A=own", NULL };
	const char *const not_passed[] = { "PATH=/usr/local/bin:/usr/bin:/bin", "A=own",
		"B=own", NULL };

	(void)state;
	check_made(with, slurm, changes, ARRAY_SIZE(changes), kept_one);
	check_made(without, slurm, changes, ARRAY_SIZE(changes), set);
	check_made_of(with, slurm, "B=x", changes, ARRAY_SIZE(changes), listed);
	check_made_of(with, slurm, "NONE", changes, ARRAY_SIZE(changes), not_passed);
}

static void variables_with_the_prefix_are_left_out(void **state)
{
	static const struct childenv_change changes[] = { { "SLURM_MINE", "1", false } };
	char *const from[] = { ENTRY("SLURM_JOB_ID=7"), ENTRY("SLURM="),
		ENTRY("A=SLURM_"), ENTRY("SLURM_=1"), ENTRY("slurm_x=1"), NULL };
	const char *const wanted[] = { "SLURM=", "A=SLURM_", "slurm_x=1", "SLURM_MINE=1",
		NULL };

	(void)state;
	check_made(from, slurm, changes, ARRAY_SIZE(changes), wanted);
}

static void an_empty_environment_works(void **state)
{
	char *const from[] = { NULL };
	const char *const wanted[] = { NULL };

	(void)state;
	check_made(from, slurm, NULL, 0, wanted);
}

static void many_and_long_values_fit(void **state)
{
	enum { MANY = 300 };
	static char entries[MANY][32], values[3][5000];
	static char *from[MANY + 1];
	struct childenv_change changes[3] = { { "X", values[0], false },
		{ "Y", values[1], false }, { "Z", values[2], false } };
	char **made = NULL;

	(void)state;
	for (size_t i = 0; i < MANY; i++) {
		(void)snprintf(entries[i], sizeof(entries[i]), "V%zu=%zu", i, i);
		from[i] = entries[i];
	}
	for (size_t i = 0; i < 3; i++)
		memset(values[i], 'a' + (int)i, sizeof(values[i]) - 1);
	assert_int_equal(childenv_make(from, slurm, NULL, NULL, changes, 3, &made), 0);
	for (size_t i = 0; i < MANY; i++)
		assert_string_equal(made[i], entries[i]);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(made[MANY + i][0], changes[i].name[0]);
		assert_string_equal(made[MANY + i] + 2, values[i]);
	}
	assert_null(made[MANY + 3]);
	free(made);
}

/* --- lists ------------------------------------------------------------------------- */

struct list_row {
	const char *list;
	const char *made[8]; /* of the environment below */
};

static void a_list_chooses_the_variables(void **state)
{
	static const struct childenv_change changes[] = { { "GPU", "7", false } };
	char *const from[] = { ENTRY("A=1"), ENTRY("B=2"), ENTRY("PATH=/mine"),
		ENTRY("HOME=/h"), ENTRY("SLURM_X=1"), ENTRY("GPU=old"), NULL };
	static const char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
	static const struct list_row rows[] = {
		{ "ALL", { "A=1", "B=2", "PATH=/mine", "HOME=/h", "GPU=7" } },
		{ "all,A=x", { "B=2", "PATH=/mine", "HOME=/h", "A=x", "GPU=7" } },
		{ "C=y=z,ALL",
			{ "A=1", "B=2", "PATH=/mine", "HOME=/h", "C=y=z", "GPU=7" } },
		{ "NONE", { "HOME=/h", path, "GPU=7" } },
		{ "none", { "HOME=/h", path, "GPU=7" } },
		{ "A", { "A=1", "HOME=/h", path, "GPU=7" } },
		{ "A,B=x", { "A=1", "HOME=/h", path, "B=x", "GPU=7" } },
		{ "A=", { "HOME=/h", path, "A=", "GPU=7" } },
		{ "A=1,A=2,B=1,B", { "B=2", "HOME=/h", path, "A=2", "GPU=7" } },
		{ "PATH", { "PATH=/mine", "HOME=/h", "GPU=7" } },
		{ "PATH=/x,HOME=/y", { "PATH=/x", "HOME=/y", "GPU=7" } },
		{ "nothing", { "HOME=/h", path, "GPU=7" } },
		{ "ALL,SLURM_X",
			{ "A=1", "B=2", "PATH=/mine", "HOME=/h", "SLURM_X=1", "GPU=7" } },
		{ "ALL,GPU=8,GPU", { "A=1", "B=2", "PATH=/mine", "HOME=/h", "GPU=7" } },
		{ "GPU=8", { "HOME=/h", path, "GPU=7" } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_made_of(from, slurm, rows[i].list, changes, 1, rows[i].made);
}

static void a_list_has_names_and_values(void **state)
{
	static const char *const good[] = { "ALL", "all", "NONE", "A", "_a1",
		"A=", "A=b=c", "A=1,B,C=", "ALL,A=1", "A,ALL", "A= b\n" };
	static const struct {
		const char *list, *why;
	} bad[] = {
		{ "", "'' is not ALL, NONE, NAME or NAME=VALUE" },
		{ "A,,B", "'' is not ALL" },
		{ "A,", "'' is not ALL" },
		{ "=1", "'=1' is not ALL" },
		{ "1A=2", "'1A=2' is not ALL" },
		{ "A-B", "'A-B' is not ALL" },
		{ "A=1,2",
			"'2' is not ALL, NONE, NAME or NAME=VALUE; a value here cannot "
			"contain a comma" },
		{ "NONE,A=1", "NONE must be the only item" },
		{ "A,NONE", "NONE must be the only item" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		assert_int_equal(childenv_check(good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct why why = WHY_NONE;

		assert_int_equal(childenv_check(bad[i].list, &why), -EINVAL);
		assert_memory_equal(why.text, bad[i].why, strlen(bad[i].why));
	}
}

static void kept_variables_pass_whatever_the_list_says(void **state)
{
	static const char *const names[] = { "SLURM_CONF*", "SLURM_JOB_ID", NULL };
	char *const from[] = { ENTRY("SLURM_CONF=/c"), ENTRY("SLURM_CONF_SERVER=h"),
		ENTRY("SLURM_CON=1"), ENTRY("SLURM_JOB_ID=7"), ENTRY("SLURM_JOB_ID_X=1"),
		ENTRY("SLURM_PROCID=0"), ENTRY("A=1"), NULL };
	const char *const all[] = { "SLURM_CONF=/c", "SLURM_CONF_SERVER=h",
		"SLURM_JOB_ID=7", "A=1", NULL };
	const char *const none[] = { "SLURM_CONF=/c", "SLURM_CONF_SERVER=h",
		"SLURM_JOB_ID=7", "PATH=/usr/local/bin:/usr/bin:/bin", NULL };

	(void)state;
	kept = names;
	check_made_of(from, slurm, NULL, NULL, 0, all);
	check_made_of(from, slurm, "NONE", NULL, 0, none);
	kept = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_variables_pass_unchanged),
		cmocka_unit_test(changes_replace_add_and_remove),
		cmocka_unit_test(a_default_gives_way_to_a_value_of_the_user),
		cmocka_unit_test(variables_with_the_prefix_are_left_out),
		cmocka_unit_test(kept_variables_pass_whatever_the_list_says),
		cmocka_unit_test(an_empty_environment_works),
		cmocka_unit_test(many_and_long_values_fit),
		cmocka_unit_test(a_list_chooses_the_variables),
		cmocka_unit_test(a_list_has_names_and_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
