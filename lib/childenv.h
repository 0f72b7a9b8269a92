/*
 * The environment of a command: the one that gpulease was started with, but for some changes.
 * Pure but for memory.
 *
 * What passes can be a list as srun's --export has it, items with commas between them: ALL,
 * everything; NONE, alone: nothing; NAME, this variable; NAME=VALUE, this one so.  Where ALL is
 * not among them what a login has passes nonetheless, and PATH is the system's.
 */
#ifndef GPULEASE_CHILDENV_H
#define GPULEASE_CHILDENV_H

#include "text.h"

struct childenv_change {
	const char *name;
	const char *value; /* NULL: removed */
};

/* Whether @list is such a list: 0, or -EINVAL with the reason in @why. */
MUST_CHECK int childenv_check(const char *list, struct why *why);

/*
 * Makes the NULL-terminated environment *@ret from @from: what passes by @list, a good one or
 * NULL: everything; without variables whose names begin with @without, unless @list names them;
 * always with the variables that @kept names (NULL: none; its last entry is NULL; "NAME*" is every
 * name that begins with NAME);
 * then with the values in @list, the last one of a name, and at last with @changes.  One block
 * of memory, freed by the caller with free().  0 or -ENOMEM.
 */
MUST_CHECK int childenv_make(char *const from[], const char *without,
	const char *const kept[], const char *list, const struct childenv_change *changes,
	size_t count, char ***ret);

#endif
