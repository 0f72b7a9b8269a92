/*
 * Finds items of an array by their token, in a time that does not grow with their number: a hash
 * table of their indices.  If there are few items they are compared one by one, and no table is
 * allocated.
 */
#ifndef GPULEASE_TOKEN_INDEX_H
#define GPULEASE_TOKEN_INDEX_H

#include "base.h"

/* Items of @size bytes, each with its token, a string, @offset bytes from its start. */
struct token_items {
	const void *first;
	size_t count, size, offset;
};

/* The first @used items are in the table.  Zeroed: empty.  Belongs to one array. */
struct token_index {
	uint32_t *places; /* 1 + an index, 0: free */
	size_t room, used;
};

/*
 * Returns the first item with @token; SIZE_MAX: there is none.  Enters the items that were appended
 * since the last call; without memory for that it compares all.
 */
size_t token_index_find(
	struct token_index *index, const struct token_items *items, const char *token);

/* To be called when items were removed, moved within the array or changed their token. */
void token_index_reset(struct token_index *index);

void token_index_release(struct token_index *index);

#endif
