/*
 * Numbers of jobs in a row, as ranges: "1-4,7,3".  Their order counts.  Pure.
 */
#ifndef GPULEASE_BATCH_NUMBERS_H
#define GPULEASE_BATCH_NUMBERS_H

#include "text.h"

/*
 * Appends them one after the other to @out, which is empty at first, as @range is {0}: what
 * was not written yet.  With the last one (or 0, if it is known too late) all is written.
 */
void batch_add_number(uint64_t number, bool is_last, uint64_t range[2], struct text *out);

/* Whether the @size bytes at @text are such a list, of numbers from 1; "" is one of none. */
bool batch_is_numbers(const char *text, size_t size);

/*
 * And back: @add is called with each in turn until it returns something but 0, which is
 * returned.  -EINVAL: that is no such list, and @add was not called.  It is for @add to say
 * when there are too many.
 */
MUST_CHECK int batch_each_number(
	const char *text, size_t size, int (*add)(void *arg, uint64_t number), void *arg);

#endif
