/*
 * The command line that submits an entry of a batch as a job: the options of --batch that concern
 * jobs, then those that the attributes of the line stand for, which win, and the command.  Pure but
 * for memory.
 */
#ifndef GPULEASE_ENTRY_WORDS_H
#define GPULEASE_ENTRY_WORDS_H

#include "batch_list.h"
#include "engine_line.h"

/* Words, one after the other, each with its NUL. */
struct entry_words {
	char *at;
	size_t size;
};

/*
 * Returns the words for @line of a batch with the options @batch; the job is called @name unless
 * the line has a name.  The caller frees ->at, which is NULL without memory.
 */
struct entry_words entry_words_make(
	const struct engine_line *batch, const struct batch_line *line, const char *name);

/*
 * Reads the words into @ret, as gpulease-engine reads its command line.  Both have to stay.
 * Returns 0, or a negative errno with the reason in @why.
 */
MUST_CHECK int entry_words_read(
	const struct entry_words *words, struct engine_line *ret, struct why *why);

#endif
