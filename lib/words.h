/*
 * The words of a line for a shell, and words as such a line has them.  Nothing is expanded:
 * `$HOME` stays what it is.  Pure.
 */
#ifndef GPULEASE_WORDS_H
#define GPULEASE_WORDS_H

#include "text.h"

/*
 * Appends the next word at *@at to @out, as it is without '…', "…" and backslashes, and moves
 * *@at behind it.  Blanks, newlines and the shell's operators stand between words; `#` where
 * one could begin is a comment to the end of the line.  A quote without an end ends there, too.
 * False where no word is left: *@at is at the end then, and @out as it was.
 */
bool words_take(const char **at, struct text *out);

/* Appends @word as one word for a shell, in '…' whatever it is. */
void words_add_in_quotes(struct text *out, const char *word);

/* The same, but as it stands where a shell reads it so. */
void words_add_quoted(struct text *out, const char *word);

#endif
