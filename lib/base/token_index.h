/*
 * Finds items of an array by their token in constant time, with a hash table of their indices.  A
 * few items are compared one by one, without a table.
 */
#ifndef GPULEASE_TOKEN_INDEX_H
#define GPULEASE_TOKEN_INDEX_H

#include "base.h"

/* Items of @size bytes, each with its token, a string, @offset bytes from its start. */
struct token_items {
	const void *first;
	size_t count, size, offset;
};

/* The index of one array.  A zeroed struct is an empty index. */
struct token_index {
	uint32_t *places; /* 1 + the index of an item; 0: free */
	size_t room;      /* the number of places */
	size_t used;      /* this many items, from the first on, are in the table */
};

/*
 * Returns the index of the first item with @token; SIZE_MAX if there is none.  Adds the items that
 * were appended since the last call; without memory for that it compares all items.
 */
size_t token_index_find(
	struct token_index *index, const struct token_items *items, const char *token);

/* Has to be called after items were removed, were moved within the array or changed their token. */
void token_index_reset(struct token_index *index);

void token_index_release(struct token_index *index);

#endif
