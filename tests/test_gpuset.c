#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "gpuset.h"

static struct gpuset set_of(const int *slots)
{
	struct gpuset set = GPUSET_NONE;

	for (; *slots >= 0; slots++)
		gpuset_add(&set, (unsigned)*slots);
	return set;
}

#define SET(...) set_of((const int[]){ __VA_ARGS__, -1 })

static bool is(struct gpuset set, struct gpuset expected)
{
	return gpuset_equals(&set, &expected);
}

static void a_set_has_what_was_added_and_not_removed(void **state)
{
	struct gpuset set = SET(0, 63, 64, 127);

	(void)state;
	for (unsigned slot = 0; slot < GPUSET_MAX; slot++)
		assert_int_equal(gpuset_has(&set, slot),
			slot == 0 || slot == 63 || slot == 64 || slot == 127);
	assert_false(gpuset_has(&set, GPUSET_MAX));
	assert_false(gpuset_has(&set, UINT32_MAX));
	assert_int_equal(gpuset_count(&set), 4);
	gpuset_remove(&set, 64);
	gpuset_remove(&set, 5);
	assert_false(gpuset_has(&set, 64));
	assert_int_equal(gpuset_count(&set), 3);
	assert_int_equal(gpuset_count(&GPUSET_ALL), GPUSET_MAX);
}

static void and_or_minus_are_those_of_sets(void **state)
{
	struct gpuset a = SET(1, 2, 70), b = SET(2, 70, 100), none;

	(void)state;
	assert_true(is(gpuset_and(&a, &b), SET(2, 70)));
	assert_true(is(gpuset_or(&a, &b), SET(1, 2, 70, 100)));
	assert_true(is(gpuset_minus(&a, &b), SET(1)));
	assert_true(is(gpuset_minus(&b, &a), SET(100)));
	assert_false(is(a, b));
	none = gpuset_minus(&a, &a);
	assert_true(gpuset_is_empty(&none));
	assert_false(gpuset_is_empty(&b));
}

static void slots_come_in_ascending_order(void **state)
{
	static const int slots[] = { 0, 1, 62, 63, 64, 65, 126, 127, -1 };
	struct gpuset set = set_of(slots);
	const int *expected = slots;

	(void)state;
	gpuset_for_each (slot, &set) {
		assert_int_equal(slot, *expected++);
	}
	assert_int_equal(*expected, -1);
	assert_int_equal(gpuset_next(&set, 2), 62);
	assert_int_equal(gpuset_next(&set, 127), 127);
	assert_int_equal(gpuset_next(&set, 128), -1);
	assert_int_equal(gpuset_next(&GPUSET_NONE, 0), -1);
}

static void hexadecimal_has_no_leading_zeros_and_reads_back(void **state)
{
	static const struct {
		int slots[4];
		const char *hex;
	} cases[] = {
		{ { -1 }, "0" },
		{ { 0, -1 }, "1" },
		{ { 0, 4, 5, -1 }, "31" },
		{ { 63, -1 }, "8000000000000000" },
		{ { 64, -1 }, "10000000000000000" },
		{ { 127, 0, -1 }, "80000000000000000000000000000001" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpuset set = set_of(cases[i].slots), back = GPUSET_ALL;
		char hex[GPUSET_HEX_SIZE];

		gpuset_to_hex(&set, hex);
		assert_string_equal(hex, cases[i].hex);
		assert_int_equal(gpuset_from_hex(hex, strlen(hex), &back), 0);
		assert_true(gpuset_equals(&set, &back));
	}
}

static void bad_hexadecimal_is_refused_and_changes_nothing(void **state)
{
	static const char *const cases[] = { "", "g", "0x1", "A", " 1", "1 ", "-1",
		"000000000000000000000000000000001" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct gpuset set = SET(3);

		assert_int_equal(
			gpuset_from_hex(cases[i], strlen(cases[i]), &set), -EINVAL);
		assert_true(is(set, SET(3)));
	}
}

static void a_slot_that_does_not_exist_changes_no_set(void **state)
{
	struct gpuset sets[3] = { GPUSET_NONE, GPUSET_NONE, GPUSET_NONE };

	(void)state;
	gpuset_add(&sets[1], (unsigned)gpuset_next(&sets[1], 0)); /* -1 */
	gpuset_add(&sets[1], GPUSET_MAX);
	gpuset_add(&sets[1], 200);
	for (unsigned i = 0; i < 3; i++)
		assert_true(gpuset_is_empty(&sets[i]));
	sets[0] = sets[1] = sets[2] = GPUSET_ALL;
	gpuset_remove(&sets[1], (unsigned)-1);
	gpuset_remove(&sets[1], GPUSET_MAX);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(gpuset_count(&sets[i]), GPUSET_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_has_what_was_added_and_not_removed),
		cmocka_unit_test(and_or_minus_are_those_of_sets),
		cmocka_unit_test(slots_come_in_ascending_order),
		cmocka_unit_test(hexadecimal_has_no_leading_zeros_and_reads_back),
		cmocka_unit_test(bad_hexadecimal_is_refused_and_changes_nothing),
		cmocka_unit_test(a_slot_that_does_not_exist_changes_no_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
