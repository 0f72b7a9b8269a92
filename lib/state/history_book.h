/*
 * The lines of the history that record the same end.  If the lease of a job names a recorder, the
 * job may have two lines.  The process that took its GPUs appends a provisional line, because it
 * lacks some of the facts.  The recorder appends the exact line, as a rule later.  Together they
 * record one end.  Pure but for memory.
 *
 *	zeroed -> history_book_note … -> history_book_settle -> history_book_merge … -> _release
 */
#ifndef GPULEASE_HISTORY_BOOK_H
#define GPULEASE_HISTORY_BOOK_H

#include "history.h"

struct history_entry {
	struct history_key key;
	int64_t gone_ms;
	bool is_exact, is_shown;
	char how[16], by[USER_SIZE], status[4];
};

struct history_book {
	struct history_entry *entries;
	size_t count, room;
};

/* Notes @end if it is provisional or exact.  Returns 0 or -ENOMEM. */
MUST_CHECK int history_book_note(
	struct history_book *book, const struct history_end *end);

/* Sorts the book.  Call it once the last line was noted. */
void history_book_settle(struct history_book *book);

/*
 * Whether a walk over all lines has to show the line @end.  It shows just one of the lines that
 * record one end.  Adds to @end what only the other lines have: the user that has cancelled the
 * job, that a process was left, the status, and the earlier time at which the job was over.
 */
bool history_book_merge(struct history_book *book, struct history_end *end);

void history_book_release(struct history_book *book);

#endif
