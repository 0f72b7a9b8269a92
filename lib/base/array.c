#include "array.h"

enum { FIRST_ROOM = 16 };

void *array_grow(void *array, size_t size, size_t count, size_t *room)
{
	size_t wanted = *room ? *room * 2 : FIRST_ROOM;
	void *grown;

	if (count < *room)
		return array;
	grown = reallocarray(array, wanted, size);
	if (grown)
		*room = wanted;
	return grown;
}

size_t array_lower_bound(const void *array, size_t size, size_t count, const void *key,
	bool (*is_before)(const void *item, const void *key))
{
	size_t from = 0, to = count;

	/* all items below @from come before the key, none from @to on */
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (is_before((const char *)array + middle * size, key))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}
