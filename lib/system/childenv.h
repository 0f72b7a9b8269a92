/*
 * The environment of a command: the one that gpulease was started with, filtered and changed.
 * Pure but for memory.
 *
 * The filter is a list as for srun's --export, with commas between the items: ALL (every variable),
 * NONE (no variable; the only item then), NAME (this variable) or NAME=VALUE (this variable with
 * this value).  Without ALL the command still gets the variables of a login, with the system's
 * PATH.
 */
#ifndef GPULEASE_CHILDENV_H
#define GPULEASE_CHILDENV_H

#include "text.h"

struct childenv_change {
	const char *name;
	const char *value; /* NULL: the variable is removed */
	bool is_default;   /* set only if the variable would be missing otherwise */
};

/* Checks the form of the filter @list.  Returns 0, or -EINVAL with the reason in @why. */
MUST_CHECK int childenv_check(const char *list, struct why *why);

/*
 * Makes the NULL-terminated environment *@ret from @from, in this order of precedence:
 *
 * 1. the @count changes in @changes, except defaults, which come last;
 * 2. the values in @list, and the variables that it names; the last item for a name counts;
 * 3. the variables that @kept names are kept.  It may be NULL; its last entry is NULL; "NAME*" is
 *    every name that begins with NAME;
 * 4. if @list is NULL or has ALL: all others, except those that @without names, in the same form.
 *
 * @list has to be well-formed.  *@ret is one block of memory, which the caller frees with free().
 * Returns 0 or -ENOMEM.
 */
MUST_CHECK int childenv_make(char *const from[], const char *const without[],
	const char *const kept[], const char *list, const struct childenv_change *changes,
	size_t count, char ***ret);

#endif
