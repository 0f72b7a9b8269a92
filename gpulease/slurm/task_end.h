/*
 * How tasks end: the exit status, and the words for it.  Pure.
 */
#ifndef GPULEASE_TASK_END_H
#define GPULEASE_TASK_END_H

#include "text.h"

/* The exit status for the status of waitpid(2): that of the task, or 128 + the signal's number. */
int task_end_status(int wait_status);

/* Appends "exit status 3" or "ended by SIGTERM" for the status of waitpid(2). */
void task_end_describe(int wait_status, struct text *out);

/*
 * Appends the tasks for which @is_one is set as "task 3" or "tasks 0-2,5".  @is_one has @count
 * entries.
 */
void task_end_list(const bool *is_one, unsigned count, struct text *out);

#endif
