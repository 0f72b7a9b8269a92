/*
 * What the user of an unknown option or command probably meant: an option that is spelled almost
 * like it, or what other queues call an option of gpulease.  Pure.
 */
#ifndef GPULEASE_SUGGESTION_H
#define GPULEASE_SUGGESTION_H

#include "option_parser.h"

/* Names in other systems, and the option to give instead, or a sentence. */
struct foreign_name {
	const char *
		names; /* of options, without their dashes, and of commands; one or more */
	const char *instead;
};

/* Ends with a row without names. */
extern const struct foreign_name foreign_names[];

/*
 * Adds to @why what was probably meant by the unknown option whose name, without dashes, is the
 * @size bytes at @name.  Without a guess it names --help.
 */
void suggestion_for_option(
	const struct option_def *table, const char *name, size_t size, struct why *why);

/*
 * Adds to @why what was probably meant by @word, which stands in the place of the command and is
 * no program: an option without its dashes, or a command of another system.  Returns whether it
 * has a guess.
 */
bool suggestion_for_word(
	const struct option_def *table, const char *word, struct why *why);

#endif
