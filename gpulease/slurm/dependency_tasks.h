/*
 * Tasks of arrays in the value of sbatch --dependency, as in afterok:17_3.
 *
 * A task that is in the queue, or has been, has a job, and its id takes the place of 17_3.  Other
 * tasks get their jobs later.  For one of these a job without GPUs is submitted, which runs
 * `gpulease --wait-for 17_3` and so ends with the status of the task; its id takes the place.  If
 * the process is killed before it submits the job of its user, such a job ends with the task and
 * disturbs nothing.
 */
#ifndef GPULEASE_DEPENDENCY_TASKS_H
#define GPULEASE_DEPENDENCY_TASKS_H

#include "dependency_list.h"
#include "ticket.h"

/* The jobs that were submitted, each of which waits for a task. */
struct dependency_waiters {
	uint64_t ids[2 * AFTER_MAX];
	unsigned count;
};

/*
 * Writes @value, in which dependency_list_read() has found no error, with ids of jobs to @out.
 * With @gpulease, the path of the program, submits the jobs that wait for tasks, and adds them to
 * @waiters; without it only checks the list, and writes the id of the array for such a task.
 * Returns 0; a negative errno with the reason in @why; or, after a message, the exit status of a
 * gpulease that has failed.
 */
MUST_CHECK int dependency_tasks_resolve(const char *value, const char *gpulease,
	struct dependency_waiters *waiters, char out[DEPENDENCY_SIZE], struct why *why);

#endif
