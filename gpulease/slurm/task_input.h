/*
 * The input of the tasks.  As with srun, each task gets all of stdin; --input N gives it to task N
 * alone, a file name gives each task the file.  A task that does not read holds up the others only
 * when its pipe is full.  With --pty task 0 reads stdin itself.
 */
#ifndef GPULEASE_TASK_INPUT_H
#define GPULEASE_TASK_INPUT_H

#include <poll.h>

#include "task_order.h"

struct task_input {
	const struct task_order *order;
	int *fds;   /* for each task, until it is started: its stdin */
	int *pipes; /* for each task: our end of its stdin; -1: none, or it reads no more */
	size_t *done; /* for each task: how much of ->buffer it has */
	char buffer[4096];
	size_t used;
	bool is_at_end; /* stdin has ended, or no task reads it */
	bool is_away;   /* the terminal belongs to another process group */
};

/*
 * Opens the files and pipes of @order.  The caller ends with this process, which frees everything.
 * Returns 0, or a negative errno with the reason in @why.
 */
MUST_CHECK int task_input_open(
	struct task_input *input, const struct task_order *order, struct why *why);

/* Closes what only task @task needs, once it is started. */
void task_input_started(struct task_input *input, unsigned task);

/* Appends to @fds what to poll, at most one more than the tasks.  Their number. */
size_t task_input_poll(const struct task_input *input, struct pollfd *fds);

/* Reads and writes what is possible without waiting. */
void task_input_step(struct task_input *input);

/* The terminal may be ours again: this process was continued. */
void task_input_continue(struct task_input *input);

#endif
