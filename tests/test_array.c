#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "array.h"

static bool is_less(const void *item, const void *key)
{
	return *(const int *)item < *(const int *)key;
}

static size_t lower_bound(const int *all, size_t count, int key)
{
	return array_lower_bound(all, sizeof(*all), count, &key, is_less);
}

static void an_array_keeps_its_items_while_it_grows(void **state)
{
	size_t room = 0;
	int *all = NULL;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int *grown = array_grow(all, sizeof(*all), (size_t)i, &room);

		assert_non_null(grown);
		assert_true(room > (size_t)i);
		all = grown;
		all[i] = i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(all[i], i);
	free(all);
}

static void the_lower_bound_is_the_first_item_that_is_not_less(void **state)
{
	static const int all[] = { 1, 3, 3, 3, 8, 9 };

	(void)state;
	assert_int_equal(lower_bound(all, ARRAY_SIZE(all), 0), 0);
	assert_int_equal(lower_bound(all, ARRAY_SIZE(all), 1), 0);
	assert_int_equal(lower_bound(all, ARRAY_SIZE(all), 2), 1);
	assert_int_equal(lower_bound(all, ARRAY_SIZE(all), 3), 1);
	assert_int_equal(lower_bound(all, ARRAY_SIZE(all), 4), 4);
	assert_int_equal(lower_bound(all, ARRAY_SIZE(all), 9), 5);
	assert_int_equal(lower_bound(all, ARRAY_SIZE(all), 10), ARRAY_SIZE(all));
}

static void an_empty_array_has_its_lower_bound_at_0(void **state)
{
	(void)state;
	assert_int_equal(lower_bound(NULL, 0, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_keeps_its_items_while_it_grows),
		cmocka_unit_test(the_lower_bound_is_the_first_item_that_is_not_less),
		cmocka_unit_test(an_empty_array_has_its_lower_bound_at_0),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
