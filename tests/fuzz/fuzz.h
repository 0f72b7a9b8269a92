/*
 * What fuzz targets have in common.
 */
#ifndef GPULEASE_TESTS_FUZZ_H
#define GPULEASE_TESTS_FUZZ_H

#include "text.h"

/* Checks one input, which need not end with a NUL; aborts on a failure.  Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Not assert(): it must hold with NDEBUG, too. */
#define MUST(condition)           \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* A copy of the input as a string, which the caller frees; NULL: no memory. */
static inline char *fuzz_string(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return NULL;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* Checks that there is a reason of one printable line. */
static inline void fuzz_check_reason(const struct why *why)
{
	char printable[sizeof(why->text)];
	struct text shown = TEXT_ON(printable);

	MUST(why->text[0]);
	text_add_printable(&shown, why->text, strlen(why->text));
	MUST(strcmp(printable, why->text) == 0);
}

/* The same, and that it names the file `x` and a line of it. */
static inline void fuzz_check_line_reason(const struct why *why)
{
	MUST(strncmp(why->text, "x, line ", 8) == 0);
	fuzz_check_reason(why);
}

#endif
