#include "text.h"
#include "token_index.h"

/* Up to COMPARE_MOST items are compared one by one, which is faster than hashing. */
enum { COMPARE_MOST = 16, FIRST_ROOM = 64 };

static const char *items_token(const struct token_items *items, size_t i)
{
	return (const char *)items->first + i * items->size + items->offset;
}

/*
 * Returns the place of @token, or the free place for it.  Collisions go to the next place; the
 * table is at most half full, so the search ends.
 */
static uint32_t *index_find_place(const struct token_index *index,
	const struct token_items *items, const char *token)
{
	size_t at = (size_t)text_hash(TEXT_HASH_BEGIN, token, strlen(token));

	for (;; at++) {
		uint32_t *place = &index->places[at & (index->room - 1)];

		if (!*place || strcmp(items_token(items, *place - 1), token) == 0)
			return place;
	}
}

/* Enters the items that the table lacks.  Returns false without memory. */
static bool index_enter_items(struct token_index *index, const struct token_items *items)
{
	size_t room = index->room ? index->room : FIRST_ROOM;

	while (room < 2 * items->count)
		room *= 2;
	if (room > index->room) {
		uint32_t *places = calloc(room, sizeof(*places));

		if (!places)
			return false;
		free(index->places);
		*index = (struct token_index){ .places = places, .room = room };
	}
	for (; index->used < items->count; index->used++) {
		uint32_t *place =
			index_find_place(index, items, items_token(items, index->used));

		if (!*place) /* of items with the same token the first counts */
			*place = (uint32_t)index->used + 1;
	}
	return true;
}

static size_t items_find(const struct token_items *items, const char *token)
{
	for (size_t i = 0; i < items->count; i++)
		if (strcmp(items_token(items, i), token) == 0)
			return i;
	return SIZE_MAX;
}

size_t token_index_find(
	struct token_index *index, const struct token_items *items, const char *token)
{
	uint32_t *place;

	if (items->count <= COMPARE_MOST || !index_enter_items(index, items))
		return items_find(items, token);
	place = index_find_place(index, items, token);
	return *place ? *place - 1 : SIZE_MAX;
}

void token_index_reset(struct token_index *index)
{
	if (index->used)
		memset(index->places, 0, index->room * sizeof(*index->places));
	index->used = 0;
}

void token_index_release(struct token_index *index)
{
	free(index->places);
	*index = (struct token_index){ .places = NULL };
}
