/* The texts of Slurm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "slurm.h"

static void gpus_are_a_list_with_ranges(void **state)
{
	static const struct {
		const char *list, *out;
		unsigned count;
	} rows[] = {
		{ "0", "0", 1 },
		{ "2,3", "2,3", 2 },
		{ "0-2,5", "0,1,2,5", 4 },
		{ "7-7", "7", 1 },
		{ "", "", 0 },
		{ ",", "", 0 },
		{ "0,", "", 0 },
		{ "3-1", "", 0 },
		{ "0-", "", 0 },
		{ "0 1", "", 0 },
		{ "gpu:0", "", 0 },
		{ "0-9999", "", 0 },
		{ "99999999999999999999", "", 0 },
		{ "GPU-00000000-1111-2222-3333-444444444444", "", 0 },
	};
	char out[SLURM_GPUS_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		unsigned count = slurm_read_gpus(rows[i].list, out);

		if (count != rows[i].count || (count && strcmp(out, rows[i].out) != 0))
			fail_msg("'%s' has %u: %s", rows[i].list, count, out);
	}
}

static void the_largest_number_of_gpus_fits(void **state)
{
	char out[SLURM_GPUS_SIZE];

	(void)state;
	assert_int_equal(slurm_read_gpus("0-127", out), 128);
	assert_string_equal(out + strlen(out) - 4, ",127");
}

static void a_node_is_in_the_list_or_not(void **state)
{
	static const struct {
		const char *nodes, *host;
		bool has;
	} rows[] = {
		{ "n1", "n1", true },
		{ "n1", "n1.site.org", true },
		{ "n1.site.org", "n1.site.org", true },
		{ "n1", "n11", false },
		{ "n11", "n1", false },
		{ "login,n1", "n1", true },
		{ "n[1-3]", "n2", true },
		{ "n[1-3]", "n4", false },
		{ "n[1-3]", "n", false },
		{ "n[1-3]", "n02", false },
		{ "n[08-12]", "n08", true },
		{ "n[08-12]", "n8", false },
		{ "n[08-12]", "n10", true },
		{ "n[8-12]", "n10", true },
		{ "n[8-12]", "n08", false },
		{ "n[1,3,7-9]-ib", "n8-ib", true },
		{ "n[1,3,7-9]-ib", "n8", false },
		{ "a[1-2],b[1,3]", "b3", true },
		{ "a[1-2],b[1,3]", "b2", false },
		{ "r[1-2]n[01-16]", "r2n16", true },
		{ "r[1-2]n[01-16]", "r3n16", false },
		{ "r[1-2]n[01-16]", "r2n17", false },
		{ "n[0-999999]", "n123456", true },
		/* a malformed list covers every host */
		{ "n[1-3", "login", true },
		{ "", "login", true },
		{ "n1,,n2", "login", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (slurm_has_node(rows[i].nodes, rows[i].host) != rows[i].has)
			fail_msg("%s in %s", rows[i].host, rows[i].nodes);
}

static void a_job_id_is_a_number(void **state)
{
	static const char *const wrong[] = { "", "0", "07", "7x", "-7", " 7", "7_1",
		"9999999999999999999999" };

	(void)state;
	assert_true(slurm_is_job_id("7"));
	assert_true(slurm_is_job_id("4294967294"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (slurm_is_job_id(wrong[i]))
			fail_msg("'%s'", wrong[i]);
}

static void the_name_of_a_directory_contains_the_job(void **state)
{
	static const char *const wrong[] = { "slurm-", "slurm-7", "slurm-x-a@b",
		"sim-4x1", "slurm-0-a@b", "slurm-7-a", "slurm-7a-b@c" };
	char name[SLURM_NAME_SIZE], job[24];

	(void)state;
	slurm_directory_name("7", "a/b..c", "n1.x", name);
	assert_string_equal(name, "slurm-7-a_b..c@n1.x");
	assert_true(slurm_directory_job(name, job));
	assert_string_equal(job, "7");
	slurm_directory_name("123", "", "", name);
	assert_string_equal(name, "slurm-123-@");
	assert_true(slurm_directory_job(name, job));
	assert_string_equal(job, "123");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (slurm_directory_job(wrong[i], job))
			fail_msg("'%s'", wrong[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_a_list_with_ranges),
		cmocka_unit_test(the_largest_number_of_gpus_fits),
		cmocka_unit_test(a_node_is_in_the_list_or_not),
		cmocka_unit_test(a_job_id_is_a_number),
		cmocka_unit_test(the_name_of_a_directory_contains_the_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
