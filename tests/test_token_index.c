#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "token_index.h"

enum { MANY = 5000 };

struct item {
	int other;
	char token[17];
};

static struct item all[MANY];
static struct token_index tokens;
static bool has_no_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return has_no_memory ? NULL : __real_calloc(count, size);
}

static size_t find(size_t count, const char *token)
{
	const struct token_items items = { all, count, sizeof(*all),
		offsetof(struct item, token) };

	return token_index_find(&tokens, &items, token);
}

static void name(size_t i, unsigned number)
{
	(void)snprintf(all[i].token, sizeof(all[i].token), "%016x", number * 2654435761u);
}

/* After lookups in a shorter array. */
static void every_item_is_found_while_the_array_grows(void **state)
{
	(void)state;
	for (size_t count = 0; count < MANY; count += 1 + count / 9) {
		for (size_t i = 0; i < count; i++)
			name(i, (unsigned)i);
		for (size_t i = 0; i < count; i += 1 + count / 50)
			assert_int_equal(find(count, all[i].token), i);
		assert_int_equal(find(count, "0123456789abcdef"), SIZE_MAX);
		assert_int_equal(find(count, ""), SIZE_MAX);
	}
}

static void the_first_of_several_equal_items_is_found(void **state)
{
	(void)state;
	token_index_reset(&tokens);
	for (size_t i = 0; i < 100; i++)
		name(i, (unsigned)i / 2);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(find(100, all[i].token), i / 2 * 2);
}

static void moved_items_are_found_after_a_reset(void **state)
{
	(void)state;
	token_index_reset(&tokens);
	for (size_t i = 0; i < 100; i++)
		name(i, (unsigned)i);
	assert_int_equal(find(100, all[99].token), 99);
	memmove(all, all + 50, 50 * sizeof(*all));
	token_index_reset(&tokens);
	assert_int_equal(find(50, all[49].token), 49);
	name(60, 7);
	assert_int_equal(find(50, all[60].token), SIZE_MAX);
}

static void without_memory_all_items_are_compared(void **state)
{
	(void)state;
	token_index_release(&tokens);
	for (size_t i = 0; i < 100; i++)
		name(i, (unsigned)i);
	has_no_memory = true;
	assert_int_equal(find(100, all[77].token), 77);
	assert_int_equal(find(100, "none"), SIZE_MAX);
	has_no_memory = false;
	assert_int_equal(find(100, all[77].token), 77);
	token_index_release(&tokens);
	token_index_release(&tokens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_item_is_found_while_the_array_grows),
		cmocka_unit_test(the_first_of_several_equal_items_is_found),
		cmocka_unit_test(moved_items_are_found_after_a_reset),
		cmocka_unit_test(without_memory_all_items_are_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
