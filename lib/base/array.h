/*
 * Arrays: growing them, and searching sorted ones.
 */
#ifndef GPULEASE_ARRAY_H
#define GPULEASE_ARRAY_H

#include "base.h"

/*
 * Makes room for one item more than the @count items of @size bytes at @array, which is NULL at
 * first.  Returns the array, which may have moved, and sets *@room to the number of items that
 * there is room for now.  Returns NULL without memory; then @array and *@room are unchanged.  The
 * caller owns the array.
 */
MUST_CHECK void *array_grow(void *array, size_t size, size_t count, size_t *room);

/*
 * Returns the index of the first of the @count items of @size bytes at @array that does not come
 * before @key; @count if there is none.  @is_before tells whether an item comes before the key;
 * no item for which it is true may follow one for which it is false.
 */
size_t array_lower_bound(const void *array, size_t size, size_t count, const void *key,
	bool (*is_before)(const void *item, const void *key));

#endif
