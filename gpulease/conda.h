/*
 * Where conda is, and an environment of it: looked for before a job waits, for nobody wants to
 * hear of a misspelled name when its turn has come.  All as the user.
 */
#ifndef GPULEASE_CONDA_H
#define GPULEASE_CONDA_H

#include "context.h"

struct conda {
	char program[PATH_MAX];     /* conda, or micromamba */
	char environment[PATH_MAX]; /* as it is to be told to it: a name or a path */
	bool is_micromamba;
};

/*
 * Finds conda as `conda run` would: $CONDA_EXE, in PATH, where its installers put it; after all
 * these micromamba.  Then the environment @name: in the folders that $CONDA_ENVS_PATH and
 * $CONDA_ENVS_DIRS name, conda's own, ~/.conda/envs, or among those that conda has noted in
 * ~/.conda/environments.txt; one with a slash is a path, `base` is conda itself.  0, or -ENOENT
 * with what was looked for in @why.
 */
MUST_CHECK int conda_find(const char *name, struct conda *ret, struct why *why);

/* Appends the lines for a shell that activate it there, and let the shell end where that fails. */
void conda_add_activation(const struct conda *conda, struct text *out);

#endif
