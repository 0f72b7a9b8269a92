/*
 * Removes the state directories of Slurm jobs of this user that have ended.
 *
 * A directory is removed only if its name and all that it holds are what gpulease makes, no
 * process with that SLURM_JOB_ID is to be seen, and none of its tickets and leases lives.  Each
 * process that uses such a directory holds a shared flock(2) on it; the process that removes it
 * holds an exclusive one (statedir.h).
 *
 * Killed here -> a part of the directory is left, and is a good directory without that part; the
 * next process to look removes it.
 */
#ifndef GPULEASE_OLD_ALLOCATIONS_H
#define GPULEASE_OLD_ALLOCATIONS_H

#include "statedir.h"

/*
 * Looks beside @own, the directory of this allocation, which @choice has led to.  At most eight
 * directories are removed.  What fails is left to the next process.
 */
void old_allocations_remove(
	const struct statedir_choice *choice, const struct statedir *own);

#endif
