/* Keys of the live view, from the bytes that terminals send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "top_keys.h"

enum { KEYS_MAX = 8 };

/* Takes all bytes of @bytes.  Returns how many keys they are. */
static size_t take(struct top_keys *keys, const char *bytes, int out[KEYS_MAX])
{
	size_t count = 0;

	for (; *bytes; bytes++) {
		int key = top_keys_take(keys, (unsigned char)*bytes);

		if (key == TOP_KEY_NONE)
			continue;
		assert_true(count < KEYS_MAX);
		out[count++] = key;
	}
	return count;
}

static void a_sequence_is_one_key(void **state)
{
	static const struct {
		const char *bytes;
		int key;
	} rows[] = {
		{ "q", 'q' },
		{ "?", '?' },
		{ "\f", TOP_KEY_REDRAW },
		{ "\r", '\r' },
		{ "\033[A", TOP_KEY_UP },
		{ "\033OA", TOP_KEY_UP },
		{ "\033[1;5A", TOP_KEY_UP }, /* with Ctrl */
		{ "\033[B", TOP_KEY_DOWN },
		{ "\033OB", TOP_KEY_DOWN },
		{ "\033[C", TOP_KEY_RIGHT },
		{ "\033[D", TOP_KEY_LEFT },
		{ "\033[5~", TOP_KEY_PAGE_UP },
		{ "\033[6~", TOP_KEY_PAGE_DOWN },
		{ "\033[6;3~", TOP_KEY_PAGE_DOWN },
		{ "\033[H", TOP_KEY_FIRST },
		{ "\033[1~", TOP_KEY_FIRST },
		{ "\033[7~", TOP_KEY_FIRST },
		{ "\033[F", TOP_KEY_LAST },
		{ "\033OF", TOP_KEY_LAST },
		{ "\033[4~", TOP_KEY_LAST },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct top_keys keys = TOP_KEYS_NONE;
		int found[KEYS_MAX];

		assert_int_equal(take(&keys, rows[i].bytes, found), 1);
		assert_int_equal(found[0], rows[i].key);
		assert_false(top_keys_is_escape(&keys));
	}
}

static void other_sequences_are_no_keys_and_end(void **state)
{
	static const char *const rows[] = {
		"\033[2~",
		"\033[15~",
		"\033[55555555555555555555~",
		"\033[Z",
		"\033OP",
		"\033a", /* Alt */
		"\xc3\xa4",
		"\xe2\x9c\x93",
		"\033[\001",
		"\033[<0;3;4M",
		"\033[?1;2c",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct top_keys keys = TOP_KEYS_NONE;
		int found[KEYS_MAX];

		assert_int_equal(take(&keys, rows[i], found), 0);
		assert_int_equal(take(&keys, "j", found), 1);
		assert_int_equal(found[0], 'j');
	}
}

static void escape_is_a_key_once_nothing_follows(void **state)
{
	struct top_keys keys = TOP_KEYS_NONE;
	int found[KEYS_MAX];

	(void)state;
	assert_int_equal(top_keys_end(&keys), TOP_KEY_NONE);
	assert_int_equal(take(&keys, "\033", found), 0);
	assert_true(top_keys_is_escape(&keys));
	assert_int_equal(top_keys_end(&keys), TOP_KEY_ESCAPE);
	assert_false(top_keys_is_escape(&keys));
	assert_int_equal(take(&keys, "A", found), 1);
	assert_int_equal(found[0], 'A');
}

static void escape_twice_is_a_key_and_a_beginning(void **state)
{
	struct top_keys keys = TOP_KEYS_NONE;
	int found[KEYS_MAX];

	(void)state;
	assert_int_equal(take(&keys, "\033\033[A", found), 2);
	assert_int_equal(found[0], TOP_KEY_ESCAPE);
	assert_int_equal(found[1], TOP_KEY_UP);
}

static void keys_come_one_after_another(void **state)
{
	struct top_keys keys = TOP_KEYS_NONE;
	int found[KEYS_MAX];

	(void)state;
	assert_int_equal(take(&keys, "j\033[A\033[6~q", found), 4);
	assert_int_equal(found[0], 'j');
	assert_int_equal(found[1], TOP_KEY_UP);
	assert_int_equal(found[2], TOP_KEY_PAGE_DOWN);
	assert_int_equal(found[3], 'q');
}

/* A slow line brings the bytes of a key one by one. */
static void a_sequence_that_has_begun_waits_for_its_end(void **state)
{
	struct top_keys keys = TOP_KEYS_NONE;
	int found[KEYS_MAX];

	(void)state;
	assert_int_equal(take(&keys, "\033[", found), 0);
	assert_false(top_keys_is_escape(&keys));
	assert_int_equal(top_keys_end(&keys), TOP_KEY_NONE);
	assert_int_equal(take(&keys, "A", found), 1);
	assert_int_equal(found[0], TOP_KEY_UP);
}

/* Also that no number overflows: the sanitizers see it. */
static void any_bytes_leave_a_state_that_ends(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		struct top_keys keys = TOP_KEYS_NONE;

		for (int i = 0; i < 100; i++) {
			seed = seed * 1664525 + 1013904223;
			(void)top_keys_take(&keys, (unsigned char)(seed >> 24));
		}
		(void)top_keys_end(&keys);
		(void)top_keys_take(&keys, '~'); /* the end of any sequence */
		assert_int_equal(keys.state, TOP_KEYS_GROUND);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sequence_is_one_key),
		cmocka_unit_test(other_sequences_are_no_keys_and_end),
		cmocka_unit_test(escape_is_a_key_once_nothing_follows),
		cmocka_unit_test(escape_twice_is_a_key_and_a_beginning),
		cmocka_unit_test(keys_come_one_after_another),
		cmocka_unit_test(a_sequence_that_has_begun_waits_for_its_end),
		cmocka_unit_test(any_bytes_leave_a_state_that_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
