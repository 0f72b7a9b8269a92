#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cluster_gres.h"

struct count_case {
	const char *list;
	unsigned gpus, shards;
};

static void gpus_are_counted_in_all_forms_of_slurm(void **state)
{
	static const struct count_case cases[] = {
		{ "gpu:sim:2", 2, 0 },
		{ "gpu:2(S:0-1)", 2, 0 },
		{ "gpu:a100:4(S:0-1),shard:16", 4, 16 },
		{ "gpu:a100:2,gpu:v100:1", 3, 0 },
		{ "gres:gpu:sim:2", 2, 0 },
		{ "gres/gpu:sim:2", 2, 0 },
		{ "gres:gpu", 1, 0 },
		{ "gres:gpu:h100", 1, 0 },
		{ "gres:gpu:h100:2", 2, 0 },
		{ "gres/gpu:2", 2, 0 },
		{ "gres:shard:3", 0, 3 },
		{ "cpu=1,mem=8000M,node=1,billing=1,gres/gpu=1", 1, 0 },
		/* the types beside their sum */
		{ "billing=2,cpu=2,gres/gpu:a100=2,gres/gpu:v100=1,gres/gpu=3", 3, 0 },
		/* only types are accounted for */
		{ "cpu=2,gres/gpu:a100=2,gres/gpu:v100=1", 3, 0 },
		{ "cpu=2,gres/gpumem=0,gres/gpuutil=0", 0, 0 },
		{ "cpu=1,gres/shard=4", 0, 4 },
		{ "gpu:(null):2(IDX:0-1)", 2, 0 },
		{ "gpu:sim:0(IDX:N/A)", 0, 0 },
		{ "N/A", 0, 0 },
		{ "(null)", 0, 0 },
		{ "", 0, 0 },
		{ "craynetwork:4,gpu:1", 1, 0 },
		{ "gpu:99999999999999999999", GRES_COUNT_MAX, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(gres_count(cases[i].list, false), cases[i].gpus);
		assert_int_equal(gres_count(cases[i].list, true), cases[i].shards);
	}
}

static void an_item_has_its_type(void **state)
{
	const char *list =
		"shard:a100:3(2/4,1/4),gpu:(null):1(IDX:2),gpu:h100:2(IDX:0-1)";
	struct gres gres;

	(void)state;
	assert_true(gres_next(&list, &gres));
	assert_true(gres.is_shard);
	assert_string_equal(gres.type, "a100");
	assert_int_equal(gres.count, 3);
	assert_true(gres_next(&list, &gres));
	assert_false(gres.is_shard);
	assert_string_equal(gres.type, "");
	assert_int_equal(gres.count, 1);
	assert_true(gres_next(&list, &gres));
	assert_string_equal(gres.type, "h100");
	assert_int_equal(gres.count, 2);
	assert_false(gres_next(&list, &gres));
}

static void indices_are_read(void **state)
{
	struct gpuset set = gres_indices("IDX:0-2,5,7)");
	char hex[GPUSET_HEX_SIZE];

	(void)state;
	gpuset_to_hex(&set, hex);
	assert_string_equal(hex, "a7");
	set = gres_indices("IDX:126-4000)");
	assert_int_equal(gpuset_count(&set), 2);
	set = gres_indices("IDX:N/A)");
	assert_true(gpuset_is_empty(&set));
	set = gres_indices("S:0-1)");
	assert_true(gpuset_is_empty(&set));
	set = gres_indices(NULL);
	assert_true(gpuset_is_empty(&set));
}

static void shards_of_each_gpu_are_read(void **state)
{
	unsigned used = 9, all = 9;

	(void)state;
	assert_true(gres_shards_of("2/4,0/4)", 0, &used, &all));
	assert_int_equal(used, 2);
	assert_int_equal(all, 4);
	assert_true(gres_shards_of("2/4,0/4)", 1, &used, &all));
	assert_int_equal(used, 0);
	assert_false(gres_shards_of("2/4,0/4)", 2, &used, &all));
	assert_false(gres_shards_of("IDX:0)", 0, &used, &all));
	assert_false(gres_shards_of("2", 0, &used, &all));
	assert_false(gres_shards_of(NULL, 0, &used, &all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_counted_in_all_forms_of_slurm),
		cmocka_unit_test(an_item_has_its_type),
		cmocka_unit_test(indices_are_read),
		cmocka_unit_test(shards_of_each_gpu_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
