/*
 * Starting the process of one task.
 */
#ifndef GPULEASE_TASK_START_H
#define GPULEASE_TASK_START_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "task_order.h"

/* What the new process of a task gets. */
struct task_start {
	const struct task_order *order;
	unsigned task;
	const char *program; /* the file to execute */
	char **environment;
	pid_t group; /* 0: the new process begins the group */
	bool is_apart; /* in a session of its own, without a terminal; ->group has no effect */
	int fds[3]; /* stdin, stdout, stderr; -1: inherited */
	/* what gpulease-slurm was started with: its signal mask, its limit of open files */
	sigset_t mask;
	struct rlimit descriptors;
};

/*
 * Executes the program in place of this process, with all that this process has but its
 * environment.  Returns only if that fails: 126 or 127, after it has printed the reason with the
 * task's number.
 */
MUST_CHECK int task_execute(const struct task_start *start);

/*
 * Forks.  The child executes the program; if it cannot, it prints the reason as task_execute() does
 * and exits with its status.  Returns the pid, or a negative errno.
 */
MUST_CHECK pid_t task_start(const struct task_start *start);

#endif
