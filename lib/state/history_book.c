#include <errno.h>

#include "array.h"
#include "history_book.h"

int history_book_note(struct history_book *book, const struct history_end *end)
{
	struct history_entry *entries, *entry;

	if (!end->is_provisional && !end->is_exact)
		return 0;
	entries = array_grow(book->entries, sizeof(*entries), book->count, &book->room);
	if (!entries)
		return -ENOMEM;
	book->entries = entries;
	entry = &entries[book->count++];
	*entry = (struct history_entry){
		.key = history_key(end),
		.gone_ms = end->gone_ms,
		.is_exact = end->is_exact != 0,
	};
	text_copy(entry->how, sizeof(entry->how), end->how);
	text_copy(entry->by, sizeof(entry->by), end->by);
	text_copy(entry->status, sizeof(entry->status), end->status);
	return 0;
}

static int compare_tickets(const void *a, const void *b)
{
	const struct history_entry *x = a, *y = b;

	return (x->key.ticket > y->key.ticket) - (x->key.ticket < y->key.ticket);
}

void history_book_settle(struct history_book *book)
{
	if (book->count)
		qsort(book->entries, book->count, sizeof(*book->entries),
			compare_tickets);
}

static bool has_lower_ticket(const void *item, const void *ticket)
{
	return ((const struct history_entry *)item)->key.ticket <
	       *(const uint64_t *)ticket;
}

/* Returns the index of the first entry of @ticket, or else of the next ticket. */
static size_t book_find(const struct history_book *book, uint64_t ticket)
{
	return array_lower_bound(book->entries, sizeof(*book->entries), book->count,
		&ticket, has_lower_ticket);
}

/* Adds to @end what the process that took the lease knows better than the recorder. */
static void end_add(struct history_end *end, const struct history_entry *other)
{
	bool is_known = strcmp(other->how, HISTORY_CANCEL) == 0 ||
			strcmp(other->how, HISTORY_LINGERED) == 0;

	if (!end->how[0] && is_known) {
		text_copy(end->how, sizeof(end->how), other->how);
		text_copy(end->by, sizeof(end->by), other->by);
	}
	if (!end->status[0])
		text_copy(end->status, sizeof(end->status), other->status);
	end->gone_ms = min_i64(end->gone_ms, other->gone_ms);
	end->alive_ms = min_i64(end->alive_ms, end->gone_ms);
}

/*
 * Returns the entries of @ticket, of any attempt, user and time: *@ret_count of them; NULL: none.
 */
static struct history_entry *book_find_entries(
	struct history_book *book, uint64_t ticket, size_t *ret_count)
{
	size_t first = book_find(book, ticket), last = first;

	while (last < book->count && book->entries[last].key.ticket == ticket)
		last++;
	*ret_count = last - first;
	return last > first ? book->entries + first : NULL;
}

bool history_book_merge(struct history_book *book, struct history_end *end)
{
	struct history_key key = history_key(end);
	bool has_exact = false, is_shown = false;
	size_t count;
	struct history_entry *entries = book_find_entries(book, end->ticket, &count);

	for (size_t i = 0; i < count; i++) {
		bool is_same = history_key_is_same(&entries[i].key, &key);

		has_exact = has_exact || (is_same && entries[i].is_exact);
		is_shown = is_shown || (is_same && entries[i].is_shown);
	}
	/* only the exact line is shown, or if there is none the first provisional one */
	if (is_shown || (has_exact && !end->is_exact))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!history_key_is_same(&entries[i].key, &key))
			continue;
		entries[i].is_shown = true;
		if (end->is_exact && !entries[i].is_exact)
			end_add(end, &entries[i]);
	}
	return true;
}

void history_book_release(struct history_book *book)
{
	free(book->entries);
	*book = (struct history_book){ .entries = NULL };
}
