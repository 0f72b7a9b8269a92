/*
 * The GPUs of a job in the arguments of its command: the placeholders {gpus} {ngpus} {uuids} {id},
 * and the option of --inject.  Pure, apart from allocating memory.
 *
 * {{gpus}} becomes {gpus}.  After a `$` nothing changes, because ${id} is a variable of a shell.
 * All other braces stay as they are.
 */
#ifndef GPULEASE_INJECT_H
#define GPULEASE_INJECT_H

#include "base.h"

struct inject_values {
	const char *gpus, *ngpus, *uuids, *id;
};

/*
 * Makes *@ret from @words: the first @fixed words stay as they are, in the others the placeholders
 * are replaced by @values.
 *
 * If @option is not NULL, its value among these words becomes ->gpus, both in `OPTION V` and
 * `OPTION=V`; a word that begins like an option is no value.  If the option is missing, it is
 * appended.  An @option that ends in `=` has the second form only.  The words from `--` on are not
 * options: they stay, and the option is inserted before them.  Without GPUs the option and its
 * value are removed instead.
 *
 * The list and its new words are one block, which the caller frees with free(); the other words
 * still belong to @words and @option.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int inject_arguments(char **words, size_t fixed, const char *option,
	const struct inject_values *values, char ***ret);

/* Whether @word can be the value of the option before it: it is no option; `-1` is a number. */
bool inject_is_value(const char *word);

#endif
