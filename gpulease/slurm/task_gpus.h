/*
 * Which of the job's GPUs a task sees, as srun's --gpu-bind and --gpus-per-task say.  Pure.
 */
#ifndef GPULEASE_TASK_GPUS_H
#define GPULEASE_TASK_GPUS_H

#include "text.h"

/*
 * Appends to @out the GPUs of task number @task: some items of @gpus, a list with commas.  @bind is
 * NULL or "closest" (all of them), `none` (all of them, too: what nothing binds), `per_task:N` (the
 * next N), `single:N` (one, the same for N tasks) or `map_gpu:LIST` (the one whose place in @gpus
 * is the task's item of LIST, which begins again at its end).  `verbose,` or `v,` may stand before
 * it.  Returns 0, or -EINVAL with the reason in @why: @bind is none of these, or names more GPUs
 * than there are.
 */
MUST_CHECK int task_gpus(const char *bind, const char *gpus, unsigned task,
	struct text *out, struct why *why);

#endif
