/*
 * A directory of its own for every test that asks for one; removed with all that is in it.
 *
 *	SCRATCH_TEST(f)		in the table of tests; f finds it with `struct scratch *s = *state`
 *	skip_because("why")	in a test that cannot run here
 */
#ifndef GPULEASE_TESTS_SCRATCH_H
#define GPULEASE_TESTS_SCRATCH_H

#include "base.h"

struct scratch {
	char path[64];
	int dirfd;
};

int scratch_setup(void **state);
int scratch_teardown(void **state);

/* Writes @text to the file @name in the directory; -1 where that fails. */
int scratch_write(const struct scratch *scratch, const char *name, const char *text);

#define SCRATCH_TEST(f) \
	cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

/* Leaves the test as skipped; tests/run shows the reason. */
#define skip_because(why) (print_message("# because: %s\n", why), skip())

#endif
