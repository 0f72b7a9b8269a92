/*
 * The lines of a job script that begin with #SBATCH, by the rules of sbatch.  They end with the
 * first line that is neither blank nor a comment.  Blanks separate words; '...' and "..." keep
 * blanks; a backslash keeps the next character, also between quotes; `#` outside quotes begins a
 * comment.  Nothing is expanded.  Pure.
 *
 * sbatch joins the words of all lines, so an option without its value there takes an option of the
 * next line for it.  Here each line is read by itself.  In sbatch a backslash outside quotes keeps
 * no blank: the word ends, and sbatch ignores the options after the next word.
 */
#ifndef GPULEASE_DIRECTIVES_H
#define GPULEASE_DIRECTIVES_H

#include "text.h"

enum { DIRECTIVE_WORDS_MAX = 64 };

/* Where the reading is.  ->line is the number of the line that was read last. */
struct directives {
	char *next;
	unsigned line;
};

/* One line.  The words point into the script; ->words[->count] is NULL. */
struct directive {
	char *words[DIRECTIVE_WORDS_MAX + 1];
	unsigned count;
};

/*
 * Begins with @script of @size bytes, with a NUL after it, which the reading changes.  Returns 0,
 * or -EINVAL with the reason in @why: the script is empty, does not begin with `#!`, has a NUL, or
 * ends lines as DOS does.
 */
MUST_CHECK int directives_begin(
	struct directives *directives, char *script, size_t size, struct why *why);

enum directives_outcome { DIRECTIVES_END = 1 };

/*
 * Reads the next line of options.  Returns 0; DIRECTIVES_END if there is none; or -EINVAL with the
 * reason in @why: a quote is not closed, or there are too many words.
 */
MUST_CHECK int directives_take(
	struct directives *directives, struct directive *ret, struct why *why);

#endif
