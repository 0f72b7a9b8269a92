/*
 * Splits a shell command line into words, and quotes words for one.  Nothing is expanded: `$HOME`
 * stays as it is.  Pure.
 */
#ifndef GPULEASE_WORDS_H
#define GPULEASE_WORDS_H

#include "text.h"

/*
 * Appends the next word at *@at to @out, without its quotes ('…', "…") and backslashes.  Moves
 * *@at to the end of the word.  Blanks, newlines and shell operators separate words.  A `#` at the
 * beginning of a word starts a comment up to the end of the line.  A quote that is not closed ends
 * with the text.  Returns false if no word is left; then *@at is at the end and @out is unchanged.
 */
bool words_take(const char **at, struct text *out);

/* Appends @word as one word for a shell, always in '…'. */
void words_add_in_quotes(struct text *out, const char *word);

/* Appends @word as one word for a shell, in '…' only if the shell would change it otherwise. */
void words_add_quoted(struct text *out, const char *word);

#endif
