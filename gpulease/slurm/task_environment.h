/*
 * The environment of one task: what the job has, and the variables that Slurm sets for a task of a
 * job on one node.  Frameworks find their rank and the number of processes in them.
 */
#ifndef GPULEASE_TASK_ENVIRONMENT_H
#define GPULEASE_TASK_ENVIRONMENT_H

#include "task_order.h"

/*
 * Makes the environment of task @task.  Returns 0 with *@ret, one block that the caller frees with
 * free(); -EINVAL with the reason in @why; or -ENOMEM.
 */
MUST_CHECK int task_environment_make(
	const struct task_order *order, unsigned task, char ***ret, struct why *why);

#endif
