/*
 * Arrays that grow: a pointer, how many items are in use, how many there is room for.
 */
#ifndef GPULEASE_ARRAY_H
#define GPULEASE_ARRAY_H

#include "base.h"

/*
 * Makes room for one more behind the @count items of @size bytes at @array (NULL at first).
 * Returns the array, which may have moved, with *@room as it is now; or NULL without memory,
 * and then @array is as it was.  The caller keeps owning it.
 */
MUST_CHECK void *array_grow(void *array, size_t size, size_t count, size_t *room);

#endif
