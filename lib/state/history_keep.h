/*
 * What stays of the history when its files are full: history.2, a fair part for each user.
 *
 * `history.1` is about to be emptied.  Of its lines and those of `history.2`, a new `history.2`
 * keeps as many as one file may have.  If they are too many, the users with the most lines lose
 * their oldest lines, until all of these users have equally many.  So the lines of a user with few
 * jobs stay, however many jobs another user runs.
 *
 * A crash leaves `tmp.history.TOKEN`, which may be removed.  A crash after the new file has its
 * name leaves lines in two files, until the next line is written.
 */
#ifndef GPULEASE_HISTORY_KEEP_H
#define GPULEASE_HISTORY_KEEP_H

#include "base.h"

/*
 * Makes the new file @kept of the files @kept and @older in @dirfd, of at most @lines lines.  Does
 * nothing if @kept has the lines of @older already, or if there is no @older.  Returns 0 or a
 * negative errno; the files are then as they were.
 */
MUST_CHECK int history_keep(
	int dirfd, const char *kept, const char *older, uint64_t lines);

/*
 * Returns the user in the line at @raw, without a check of its sum.  A field that is 0 is not
 * written.  Pure.
 */
uint32_t history_glance_uid(const char *raw);

/*
 * Returns the most lines that a user may keep, so that the users together keep at most @lines; the
 * users have @counts lines, ascending.  Pure.
 */
uint64_t history_fair_part(const uint64_t *counts, size_t users, uint64_t lines);

#endif
