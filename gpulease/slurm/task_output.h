/*
 * The outputs of all tasks.  A task writes to a pipe, and its lines go to one of the outputs:
 * stdout or stderr of this process, or a file.  A task has the output itself if the output is a
 * file of its own, or with --unbuffered and without labels.
 *
 * While an output cannot be written, what goes there is not read, so memory stays bounded and the
 * tasks wait as they would for a full pipe.
 */
#ifndef GPULEASE_TASK_OUTPUT_H
#define GPULEASE_TASK_OUTPUT_H

#include <poll.h>

#include "task_lines.h"
#include "task_order.h"

/* Where lines go.  ->fd is -1 once nothing reads it: what follows is discarded. */
struct sink {
	int fd;
	struct bytes pending; /* not yet written, from ->written on */
	size_t written;
	char *path; /* of a file; NULL: stdout or stderr */
};

/* stdout or stderr of one task. */
struct stream {
	int fd;       /* the pipe, -1: none, or its end was read */
	int write_fd; /* for the task, until it is started; -1: it inherits stdout or stderr */
	struct sink *sink; /* NULL: the task writes itself */
	size_t last;       /* bytes read since all tasks have ended */
	struct task_lines lines;
};

struct task_output {
	const struct task_order *order;
	struct stream *streams; /* two for each task, stdout first */
	struct sink *sinks;
	size_t sink_count;
	bool has_failed; /* an output could not be written, which was said */
};

/*
 * Opens the files and pipes of @order.  The caller ends with this process, which frees everything.
 * Returns 0, or a negative errno with the reason in @why.
 */
MUST_CHECK int task_output_open(
	struct task_output *output, const struct task_order *order, struct why *why);

/* Closes what only task @task needs, once it is started. */
void task_output_started(struct task_output *output, unsigned task);

/* Appends to @fds what to poll, at most three times the number of tasks and two.  Their number. */
size_t task_output_poll(const struct task_output *output, struct pollfd *fds);

/* Reads and writes what is possible without waiting.  Returns 0 or -ENOMEM. */
MUST_CHECK int task_output_step(struct task_output *output);

/*
 * Once all tasks have ended: reads what is left, also where a process that a task has left behind
 * still holds the pipe.  Returns 0 or -ENOMEM; task_output_is_written() tells when all is done.
 */
MUST_CHECK int task_output_end(struct task_output *output);
bool task_output_is_written(const struct task_output *output);

#endif
