/* Names of cards and the spellings of their types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model_name.h"

static void types_are_found_however_they_are_spelled(void **state)
{
	static const char *const cards[] = { "NVIDIA GeForce RTX 3090",
		"NVIDIA GeForce RTX 2080 Ti", "NVIDIA A100-SXM4-80GB",
		"NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-32GB", "NVIDIA TITAN RTX",
		"NVIDIA RTX A6000", "NVIDIA A10" };
	static const struct {
		const char *type;
		const char *found; /* a letter for each card: + is found */
	} rows[] = {
		{ "rtx3090", "+-------" },
		{ "rtx_3090", "+-------" },
		{ "RTX-3090", "+-------" },
		{ "3090", "+-------" },
		{ "geforce_rtx_3090", "+-------" },
		{ "nvidia_geforce_rtx_3090", "+-------" },
		{ "rtx_2080_ti", "-+------" },
		{ "rtx2080ti", "-+------" },
		{ "2080ti", "-+------" },
		{ "2080", "-+------" },
		{ "a100", "--+-----" },
		{ "A100-SXM4-80GB", "--+-----" },
		{ "a100-80gb", "--+-----" },
		{ "a100_sxm4", "--+-----" },
		{ "nvidia_a100-sxm4-80gb", "--+-----" },
		{ "h100", "---+----" },
		{ "h100-80gb", "---+----" },
		{ "nvidia_h100_80gb_hbm3", "---+----" },
		{ "v100", "----+---" },
		{ "tesla_v100", "----+---" },
		{ "v100-32gb", "----+---" },
		{ "titanrtx", "-----+--" },
		{ "titan_rtx", "-----+--" },
		{ "rtxa6000", "------+-" },
		{ "a6000", "------+-" },
		{ "a10", "-------+" },
		{ "rtx", "++---++-" },
		{ "nvidia", "++++-+++" },
		{ "80gb", "--++----" },
		{ "080", "--------" },
		{ "80", "--++----" },
		{ "a100-40gb", "--------" },
		{ "80gb-a100", "--------" },
		{ "a100-a100", "--------" },
		{ "", "++++++++" },
		{ "_-", "++++++++" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (size_t j = 0; j < ARRAY_SIZE(cards); j++)
			if (model_name_matches(cards[j], rows[i].type) !=
				(rows[i].found[j] == '+'))
				fail_msg("%s: %s", rows[i].type, cards[j]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_are_found_however_they_are_spelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
