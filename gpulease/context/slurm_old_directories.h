/*
 * Removes the state directories of this user's Slurm jobs that have ended.
 *
 * A directory is removed only if its name and all names in it are ones that gpulease makes, this
 * process sees no process with that SLURM_JOB_ID, and no ticket or lease in the directory lives.
 * Each process that uses such a directory holds a shared flock(2) on it; the process that removes
 * it holds an exclusive one (statedir.h).
 *
 * A crash leaves a part of the directory, which can be used like a whole one.  A later process
 * removes it.
 */
#ifndef GPULEASE_SLURM_OLD_DIRECTORIES_H
#define GPULEASE_SLURM_OLD_DIRECTORIES_H

#include "statedir.h"

/*
 * Removes at most eight such directories beside @own, the directory of this allocation, which was
 * opened with @choice.  Failures are ignored: a later process tries again.
 */
void slurm_old_directories_remove(
	const struct statedir_choice *choice, const struct statedir *own);

#endif
