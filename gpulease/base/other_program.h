/*
 * The programs beside this one, which do without rights what needs none: gpulease-slurm and
 * gpulease-view.
 */
#ifndef GPULEASE_OTHER_PROGRAM_H
#define GPULEASE_OTHER_PROGRAM_H

#include <limits.h>

#include "base.h"

#define VIEW_PROGRAM "gpulease-view"

/*
 * Finds the program @name, in the folder of a build or in PREFIX/lib/gpulease.  Returns 0 with its
 * path in @ret, or -ENOENT.
 */
MUST_CHECK int other_program_find(const char *name, char ret[PATH_MAX]);

/* Keeps the words of @argv for other_program_become(), before the parser moves them. */
void other_program_keep(char *const *argv);

/* Returns the kept words, without the name of this program; NULL: none were kept. */
char **other_program_words(void);

/*
 * Executes `NAME PART` with the words of this command line, in place of this process and without
 * its rights.  Returns only if that fails.
 */
void other_program_become(const char *name, const char *part);

#endif
