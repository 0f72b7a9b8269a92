/*
 * The command that submits one task of an array.  Pure.
 */
#ifndef GPULEASE_ARRAY_WORDS_H
#define GPULEASE_ARRAY_WORDS_H

#include "array_list.h"

/* What the tasks of an array have in common. */
struct array_words {
	char **words; /* gpulease --submit ... -- gpulease-slurm script ... */
	uint64_t array;
	const char *record;
	const struct array_list *list;
};

/*
 * Appends the pattern of a file name with the values that only the array knows: %A, %a, and %x,
 * because the job of a task has the name N_i.  What else stands for something stays as it is.
 */
void array_words_expand(const char *pattern, uint64_t array, unsigned index,
	const char *name, struct text *out);

/* Returns the words for the task @index in memory for free(), or NULL if there is none. */
char **array_words_make(const struct array_words *from, unsigned index);

#endif
