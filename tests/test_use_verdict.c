/* What samples of memory say about the memory that a job declared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "use_verdict.h"

static void samples_span_a_life_of_which_no_long_stretch_is_unseen(void **state)
{
	static const struct {
		int64_t unseen_ms, life_ms;
		bool is_spanned;
	} cases[] = {
		{ 0, 0, true },
		{ 1, 0, false },
		{ 500, 700, false }, /* one early sample */
		{ 3000, 5000,
			false }, /* 0.5, 1 and 2 s; the memory grew in the last 3 s */
		{ 5000, 19999, false }, /* more than a quarter */
		{ 5000, 20000, true },
		{ 10000, 3600000, true },
		{ 10001, 3600000, false }, /* a gap of more than two intervals */
		{ 3600000, 3600000, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (use_is_spanned(cases[i].unseen_ms, cases[i].life_ms, 5000) !=
			cases[i].is_spanned)
			fail_msg("case %zu", i);
	assert_false(use_is_spanned(3000, 3600000, 1000));
	assert_true(use_is_spanned(3000, 3600000, 60000));
}

static const struct {
	uint64_t declared, seen;
	unsigned tolerance;
	enum use_verdict verdict;
} cases[] = {
	{ 1000, 1000, 10, USE_WITHIN },
	{ 1000, 1100, 10, USE_WITHIN },
	{ 1000, 1101, 10, USE_OVER },
	{ 1000, 900, 10, USE_WITHIN },
	{ 1000, 899, 10, USE_UNDER },
	{ 15, 16, 10, USE_WITHIN }, /* 16.5 */
	{ 15, 17, 10, USE_OVER },
	{ 15, 14, 10, USE_WITHIN }, /* 13.5 */
	{ 15, 13, 10, USE_UNDER },
	{ 1000, 1001, 0, USE_OVER },
	{ 1000, 999, 0, USE_UNDER },
	{ 1000, 1, 100, USE_WITHIN },
	{ 1000, 0, 100, USE_UNKNOWN }, /* none of its processes was seen */
	{ 1u << 30, (1u << 30) + 1, 0, USE_OVER },
};

static void memory_use_is_within_over_or_under_the_declaration(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (use_compare(cases[i].declared, cases[i].seen, true,
			    cases[i].tolerance) != cases[i].verdict)
			fail_msg("case %zu", i);
}

static void few_samples_say_only_that_a_job_is_over(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool is_over = cases[i].verdict == USE_OVER;

		if (use_compare(cases[i].declared, cases[i].seen, false,
			    cases[i].tolerance) != (is_over ? USE_OVER : USE_UNKNOWN) ||
			use_exceeds(cases[i].declared, cases[i].seen,
				cases[i].tolerance) != is_over)
			fail_msg("case %zu", i);
	}
	assert_false(use_exceeds(0, 1000, 10)); /* nothing was declared */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_span_a_life_of_which_no_long_stretch_is_unseen),
		cmocka_unit_test(memory_use_is_within_over_or_under_the_declaration),
		cmocka_unit_test(few_samples_say_only_that_a_job_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
