/*
 * The indices of an array of jobs, as in sbatch --array=0-9%3 or in the id 17_[1-3,8].  Pure.
 */
#ifndef GPULEASE_ARRAY_LIST_H
#define GPULEASE_ARRAY_LIST_H

#include "text.h"

enum {
	ARRAY_TASKS_MAX = 1000,
	ARRAY_INDEX_MAX = 4000000, /* as Slurm's highest MaxArraySize */
};

struct array_list {
	unsigned indices[ARRAY_TASKS_MAX]; /* each once, ascending */
	unsigned count;                    /* at least 1 */
	unsigned step;                     /* that of the first range with one; 1 */
	unsigned limit; /* how many tasks may run at the same time; 0: all */
};

/*
 * Reads `1,3,5-9:2%4`; brackets may enclose the indices.  Returns 0, or -EINVAL with the reason in
 * @why.
 */
MUST_CHECK int array_list_read(const char *text, struct array_list *ret, struct why *why);

/* Returns the place of @index in ->indices, or -1. */
int array_list_find(const struct array_list *list, unsigned index);

/*
 * Reads the id of tasks, `17_3` or `17_[1-3]`, which ends at @size bytes.  Returns true with the id
 * of the array and its indices; false if @text is no such id.
 */
bool array_list_read_id(
	const char *text, size_t size, uint64_t *ret_array, struct array_list *ret);

#endif
