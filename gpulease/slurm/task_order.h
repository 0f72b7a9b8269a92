/*
 * What `gpulease-slurm tasks` is asked to do.  gpulease itself writes this command line, so its
 * options are few: each is one wish of srun's, already checked.
 */
#ifndef GPULEASE_TASK_ORDER_H
#define GPULEASE_TASK_ORDER_H

#include <limits.h>

#include "settings.h"

struct task_order {
	unsigned count;    /* of the tasks, 1 to TASKS_MAX */
	unsigned cpus;     /* of each task; 0: not given */
	unsigned per_node; /* SLURM_NTASKS_PER_NODE; 0: not given */
	const char
		*bind; /* which task sees which GPUs: task_gpus.h; NULL: each sees all */
	const char *out, *err,
		*in; /* patterns of files, or the number of a task; NULL: inherited */
	const char *name; /* of the job; NULL: the program's */
	int64_t wait_ms;  /* from the first end to the end of all; 0: no bound */
	bool labels;      /* number the lines of the output */
	bool unbuffered;  /* the tasks write to the outputs themselves */
	bool appends;     /* to ->out and ->err, instead of writing them anew */
	bool kills;       /* one bad status ends all tasks */
	bool forwards;    /* the first Ctrl-C goes to the tasks */
	bool pty;         /* task 0 has the terminal, the others have /dev/null */
	bool quiet;
	bool has_log;   /* stderr is the log of a job in the background */
	char **command; /* NULL-terminated, in argv */
};

/*
 * Reads @argv, which begins with the name of the program, and the variables of srun that stand for
 * options, which a job script may set.  Returns 0, or -EINVAL with the reason in
 * @why.
 */
MUST_CHECK int task_order_read(char **argv, struct task_order *ret, struct why *why);

/*
 * Replaces what begins with % in @pattern, for task @task.  Returns 0 with the name of a file in
 * @out, or a negative errno: @why then says what is wrong with the pattern.
 */
MUST_CHECK int task_order_expand(const struct task_order *order, const char *pattern,
	unsigned task, char out[PATH_MAX], struct why *why);

/*
 * Whether @text, the value of --output and the like, is the number of a task and no file name.  If
 * so, sets *@ret_is_of to whether that is task @task.
 */
bool task_order_is_number(const char *text, unsigned task, bool *ret_is_of);

#endif
