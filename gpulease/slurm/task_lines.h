/*
 * Lines of several tasks on one output: what a task writes is passed on in whole lines, so that
 * lines of two tasks never mix.  A carriage return ends a line, too, so that a progress bar is seen
 * at once.
 * Pure but for memory.
 */
#ifndef GPULEASE_TASK_LINES_H
#define GPULEASE_TASK_LINES_H

#include "base.h"

/* A longer line is passed on in parts, between which lines of other tasks may stand. */
enum { LINE_PART_MAX = 64 * 1024 };

/* Bytes in memory that grows; free with free(->at). */
struct bytes {
	char *at;
	size_t used, room;
};

/* Appends @size bytes.  Returns 0 or -ENOMEM; nothing is appended then. */
MUST_CHECK int bytes_add(struct bytes *bytes, const char *from, size_t size);

/* What one task has written to one output and what is not passed on yet: a part of a line. */
struct task_lines {
	struct bytes rest;
	char label[16];  /* begins each line; "": none */
	bool is_in_line; /* a part of the line was passed on already */
};

/*
 * Takes the @size bytes at @from, and appends to @out the lines that are complete now; with
 * @is_last also what is left, which gets an end if lines have labels.  Returns 0 or -ENOMEM.
 */
MUST_CHECK int task_lines_take(struct task_lines *lines, const char *from, size_t size,
	bool is_last, struct bytes *out);

/* Sets the label of task @task of @count: "0: ", padded so that all are of one width. */
void task_lines_label(struct task_lines *lines, unsigned task, unsigned count);

#endif
