/*
 * What the user of an unknown option or command probably meant: an option that is spelled almost
 * like it, or what other queues call an option of gpulease.  Pure.
 */
#ifndef GPULEASE_SUGGESTION_H
#define GPULEASE_SUGGESTION_H

#include "option_parser.h"

/*
 * Rows of two strings, each with its NUL; a row without names is the end.  The first has names in
 * other systems, with blanks between them: of options, without their dashes, and of commands.  The
 * second is what to give instead: an option, or a sentence; ", …" stands for "leave it out, …".
 */
extern const char foreign_names[];

/* Whether the @size bytes at @name are one of @names, "a b c".  A `_` in @name counts as a `-`. */
bool suggestion_is_one_of(const char *names, const char *name, size_t size);

enum { SUGGESTION_FAR = 3 }; /* edits that no longer are a misspelling */

/*
 * Returns by how many edits the @size bytes at @name differ from @known; 1 if @known begins with
 * them; and SUGGESTION_FAR or more if @name was probably not meant to be @known: at most two edits
 * are a misspelling, and at most one for every three letters.
 */
unsigned suggestion_distance(const char *name, size_t size, const char *known);

/*
 * Adds to @why a guess at the option that an unknown one stands for.  The @size bytes at @name are
 * the name of the unknown option, without dashes.  Without a guess it names --help.
 */
void suggestion_for_option(
	const struct option_def *table, const char *name, size_t size, struct why *why);

/*
 * Adds to @why a guess at what @word stands for.  @word is in the place of the command and is no
 * program: an option without its dashes, or a command of another system.  Returns whether it has a
 * guess.
 */
bool suggestion_for_word(
	const struct option_def *table, const char *word, struct why *why);

#endif
