/*
 * A list of job numbers as text, with ranges: "1-4,7,3".  The order counts.  Pure.
 */
#ifndef GPULEASE_BATCH_NUMBERS_H
#define GPULEASE_BATCH_NUMBERS_H

#include "text.h"

/*
 * Appends the next number of a list to @out, which has to be empty before the first one.  @range
 * is {0} at first and holds the numbers that are not written yet.  With @is_last all is written; if
 * the last number was not known to be the last, call it once more with 0 and @is_last.
 */
void batch_add_number(uint64_t number, bool is_last, uint64_t range[2], struct text *out);

/* Whether the @size bytes at @text are such a list of numbers from 1; "" is an empty list. */
bool batch_is_numbers(const char *text, size_t size);

/*
 * Calls @add for each number of the list in turn, until it returns another value than 0, which is
 * returned.  Returns -EINVAL, without calling @add, if the text is not such a list.  A list may
 * have any number of items: @add has to stop it.
 */
MUST_CHECK int batch_each_number(
	const char *text, size_t size, int (*add)(void *arg, uint64_t number), void *arg);

#endif
