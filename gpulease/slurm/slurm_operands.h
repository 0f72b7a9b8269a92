/*
 * Lists of ids, users and names, as options of squeue and scancel have them.
 */
#ifndef GPULEASE_SLURM_OPERANDS_H
#define GPULEASE_SLURM_OPERANDS_H

#include "text.h"

/*
 * Returns the first item of @list, which has commas, that is not the id of a job; NULL: all are.
 * An id has digits.  For tasks of an array a `_` follows, and a number, a `*`, or a list in
 * brackets.
 */
const char *slurm_find_bad_id(const char *list);

/* Returns the number of ids in @list.  Empty items do not count. */
size_t slurm_count_ids(const char *list);

/* Returns the length of the item at the beginning of @list; commas in brackets do not end it. */
size_t slurm_id_length(const char *list);

/* Whether the id is that of tasks of an array. */
bool is_slurm_array_id(const char *id, size_t size);

/* Users that are chosen, as gpulease names them. */
struct slurm_users {
	bool is_chosen; /* else all are */
	size_t count;
	char names[64][64];
};

/* Adds the user whose name or number is the @size bytes at @text.  -ENOENT: there is none. */
MUST_CHECK int slurm_users_add(const char *text, size_t size, struct slurm_users *users);

/* Adds the user of this process.  Returns 0. */
MUST_CHECK int slurm_users_add_own(struct slurm_users *users);

/* Whether @users has the user with this name. */
bool has_slurm_user(const struct slurm_users *users, const char *name);

#endif
