/*
 * Runs only some functions of a unit test: those with $GPULEASE_TEST_FILTER in their names.  In
 * the variable * stands for any characters and ? for one character.  Linked into every unit
 * test; without the variable all functions run.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

/* Before main(), so that the tests need not call it. */
static __attribute__((constructor)) void filter_by_environment(void)
{
	static char pattern[256]; /* cmocka keeps the pointer */
	const char *text = getenv("GPULEASE_TEST_FILTER");

	if (!text || !*text)
		return;
	(void)snprintf(pattern, sizeof(pattern), "*%s*", text);
	cmocka_set_test_filter(pattern);
}
