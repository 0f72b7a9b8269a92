/*
 * Removes the state directories of Slurm jobs of this user that have ended.
 *
 * A directory is removed only if gpulease makes such a name and all names in it, this process sees
 * no process with that SLURM_JOB_ID, and no ticket or lease in the directory lives.  Each process
 * that uses such a directory holds a shared flock(2) on it; the process that removes it holds an
 * exclusive one (statedir.h).
 *
 * A crash leaves a part of the directory, which works as a directory.  A later process removes it.
 */
#ifndef GPULEASE_OLD_ALLOCATIONS_H
#define GPULEASE_OLD_ALLOCATIONS_H

#include "statedir.h"

/*
 * Looks for such directories beside @own, the directory of this allocation, which was opened with
 * @choice.  Removes eight of them at most.  A failure is ignored: a later process tries again.
 */
void old_allocations_remove(
	const struct statedir_choice *choice, const struct statedir *own);

#endif
