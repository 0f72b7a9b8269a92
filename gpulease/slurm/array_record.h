/*
 * What has become of the tasks of an array: a text file beside the copy of its script (spool.h),
 * for its user alone.  Lines are only appended, each with one write(2):
 *
 *	l LIST        the indices; the first line
 *	t INDEX       the task is about to be submitted
 *	n INDEX       that has failed; it is not submitted
 *	j INDEX ID    it is job ID
 *	s INDEX ID    it has started; its own process writes this
 *	c INDEX       its user has cancelled it before it was submitted
 *	e INDEX N     it has ended with status N
 *
 * A process that is killed leaves nothing to repair: the next one that runs the array reads what is
 * done and goes on; see array_part.h.
 *
 * A symbolic link, HOST.NS.array-N, leads from the id of the array to its record.
 */
#ifndef GPULEASE_ARRAY_RECORD_H
#define GPULEASE_ARRAY_RECORD_H

#include <limits.h>

#include "array_list.h"

enum array_event {
	ARRAY_TRIED = 't',
	ARRAY_NOT_TRIED = 'n',
	ARRAY_JOB = 'j',
	ARRAY_STARTED = 's',
	ARRAY_CANCELLED = 'c',
	ARRAY_ENDED = 'e',
};

/* One task.  ->job is 0 until its id is known. */
struct array_task {
	uint64_t job;
	int status; /* once it has ended */
	bool is_tried, has_started, is_cancelled, has_ended;
};

/* An open record.  ->tasks has one entry for each of ->list.indices. */
struct array_record {
	int fd;
	char path[PATH_MAX];
	struct array_list list;
	struct array_task tasks[ARRAY_TASKS_MAX];
};

/* Makes the record @path with the indices @list.  Returns 0 or a negative errno. */
MUST_CHECK int array_record_create(const char *path, const char *list);

/* Links the id @array to the record @path; replaces an older link.  0 or a negative errno. */
MUST_CHECK int array_record_link(const char *path, uint64_t array);

/*
 * Opens the record, by its path or by the id of its array, and reads it.  Returns 0, a negative
 * errno (-ENOENT: there is none), or -EINVAL: it is no record.
 */
MUST_CHECK int array_record_open(const char *path, struct array_record *ret);
MUST_CHECK int array_record_open_id(uint64_t array, struct array_record *ret);

/*
 * Reads from the record of @array what has become of its task @index.  Returns 0, what
 * array_record_open_id() returns, or -ESRCH: the array has no such task.
 */
MUST_CHECK int array_record_find_task(
	uint64_t array, unsigned index, struct array_task *ret);

/* Reads what was appended.  Returns 0 or a negative errno. */
MUST_CHECK int array_record_read(struct array_record *record);

/* Appends a line on the task @index.  Returns 0 or a negative errno. */
int array_record_add(const struct array_record *record, enum array_event event,
	unsigned index, uint64_t value);

/* The same for a process that has not opened the record.  It may fail without a word. */
void array_record_note(
	const char *path, enum array_event event, unsigned index, uint64_t value);

#endif
