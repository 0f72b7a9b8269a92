#include <errno.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hex.h"

static void every_byte_is_the_digit_that_it_looks_like_or_none(void **state)
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";

	(void)state;
	for (int c = 0; c < 256; c++) {
		const char *low = c ? strchr(lower, c) : NULL;
		const char *high = c ? strchr(upper, c) : NULL;
		int as_lower = low ? (int)(low - lower) : -1;
		int as_upper = high ? (int)(high - upper) : -1;

		assert_int_equal(hex_digit((char)c, HEX_LOWER), as_lower);
		assert_int_equal(hex_digit((char)c, HEX_UPPER), as_upper);
		assert_int_equal(hex_digit((char)c, HEX_ANY), low ? as_lower : as_upper);
	}
}

static void a_number_is_read_whole_or_refused(void **state)
{
	static const struct {
		const char *text;
		enum hex_case letters;
		int result;
		uint64_t number;
	} cases[] = {
		{ "0", HEX_LOWER, 0, 0 },
		{ "1f", HEX_LOWER, 0, 0x1f },
		{ "1F", HEX_LOWER, -EINVAL, 0 },
		{ "1F", HEX_UPPER, 0, 0x1f },
		{ "1f", HEX_UPPER, -EINVAL, 0 },
		{ "aB9", HEX_ANY, 0, 0xab9 },
		{ "ffffffffffffffff", HEX_LOWER, 0, UINT64_MAX },
		{ "0000ffffffffffffffff", HEX_LOWER, 0, UINT64_MAX },
		{ "10000000000000000", HEX_LOWER, -EINVAL, 0 },
		{ "", HEX_ANY, -EINVAL, 0 },
		{ "0x1", HEX_ANY, -EINVAL, 0 },
		{ " 1", HEX_ANY, -EINVAL, 0 },
		{ "-1", HEX_ANY, -EINVAL, 0 },
		{ "1g", HEX_ANY, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t number = 7;
		int r = hex_read(
			cases[i].text, strlen(cases[i].text), cases[i].letters, &number);

		assert_int_equal(r, cases[i].result);
		assert_true(number == (r == 0 ? cases[i].number : 7));
	}
}

static void bytes_after_the_given_size_do_not_count(void **state)
{
	uint64_t number = 0;

	(void)state;
	assert_int_equal(hex_read("12zz", 2, HEX_LOWER, &number), 0);
	assert_true(number == 0x12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_is_the_digit_that_it_looks_like_or_none),
		cmocka_unit_test(a_number_is_read_whole_or_refused),
		cmocka_unit_test(bytes_after_the_given_size_do_not_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
