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
