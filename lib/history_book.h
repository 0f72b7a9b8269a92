/*
 * Which lines of the history tell the same end.  A job whose lease names a recorder may have two
 * lines.  The process that took its GPUs appends a provisional line, because it does not know all.
 * The recorder appends the exact line, as a rule later.  Together they tell one end.  Pure but for
 * memory.
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

/* Takes note of @end if it is provisional or exact.  0 or -ENOMEM. */
MUST_CHECK int history_book_note(
	struct history_book *book, const struct history_end *end);

/* To be called when the last line was noted. */
void history_book_settle(struct history_book *book);

/*
 * In a walk over all lines: whether the line @end is to be shown.  Of the lines of one end just
 * one is.  Adds to it what only the other lines know: the user that has canceled the job, that a
 * process was left behind, the status, and the earlier moment at which the job was over.
 */
bool history_book_merge(struct history_book *book, struct history_end *end);

void history_book_release(struct history_book *book);

#endif
