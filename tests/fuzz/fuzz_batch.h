/*
 * Shared by the fuzz targets of the two forms of a jobs file.
 */
#ifndef GPULEASE_TESTS_FUZZ_BATCH_H
#define GPULEASE_TESTS_FUZZ_BATCH_H

#include "batch_list.h"
#include "fuzz.h"

static inline bool fuzz_is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : !a && !b;
}

/* Reads the input as the file `x` and calls @check for each line, even of a refused file. */
static inline int fuzz_batch(enum batch_format format, const uint8_t *data, size_t size,
	void (*check)(const struct batch_line *))
{
	struct batch_list list = BATCH_LIST_NONE;
	struct why why = WHY_NONE;
	int r = batch_list_parse(
		format, "x", (const char *)data, size, "python", NULL, &list, &why);

	(void)batch_format_of(BATCH_AUTO, "x", (const char *)data, size);
	if (r < 0)
		fuzz_check_line_reason(&why);
	for (size_t i = 0; i < list.count; i++)
		check(&list.lines[i]);
	batch_list_release(&list);
	return 0;
}

#endif
