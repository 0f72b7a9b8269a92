/*
 * Finding conda and one of its environments, before the job waits: a misspelled name is refused at
 * once, not when the job's turn has come.  All files are read with the user's rights.
 */
#ifndef GPULEASE_CONDA_H
#define GPULEASE_CONDA_H

#include "context.h"

struct conda {
	char program[PATH_MAX];     /* conda, or micromamba */
	char environment[PATH_MAX]; /* a name or a path, as conda takes it */
	bool is_micromamba;
};

/*
 * Finds conda as `conda run` would: $CONDA_EXE, PATH, the folders where its installers put it, and
 * last micromamba.  Then looks for the environment @name in the folders of $CONDA_ENVS_PATH and
 * $CONDA_ENVS_DIRS, in conda's own folder, in ~/.conda/envs, and in conda's list
 * ~/.conda/environments.txt.  A name with a slash is a path; `base` is conda itself.
 *
 * Returns 0, or -ENOENT with the places that were searched in @why.
 */
MUST_CHECK int conda_find(const char *name, struct conda *ret, struct why *why);

/* Appends shell lines that activate the environment and end the shell if that fails. */
void conda_add_activation(const struct conda *conda, struct text *out);

#endif
