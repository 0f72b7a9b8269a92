/*
 * The environment of a command: the one that gpulease was started with, but for some changes.
 * Pure but for memory.
 */
#ifndef GPULEASE_CHILDENV_H
#define GPULEASE_CHILDENV_H

#include "base.h"

struct childenv_change {
	const char *name;
	const char *value; /* NULL: removed */
};

/*
 * Makes the NULL-terminated environment *@ret from @from: without variables whose names begin
 * with @without, then with @changes.  One block of memory, freed by the caller with free().
 * 0 or -ENOMEM.
 */
MUST_CHECK int childenv_make(char *const from[], const char *without,
	const struct childenv_change *changes, size_t count, char ***ret);

#endif
