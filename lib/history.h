/*
 * The history: what ended, one record of 512 bytes a line, appended.  Written by whoever
 * removes the lowest lease of a job, so once; a crash between the line and the removal can
 * repeat it.  Nothing depends on it: a failure to write is not an error of the job.
 *
 * The oldest part is given back to the file system when the file grows, as zeros.
 */
#ifndef GPULEASE_HISTORY_H
#define GPULEASE_HISTORY_H

#include "lease.h"

/* What is known of an end.  Times are CLOCK_REALTIME in milliseconds. */
struct history_end {
	uint64_t ticket;
	uint32_t uid;
	char user[USER_SIZE];
	char gpus[64];             /* indices, as people call them: "0,3" */
	int64_t since_ms;          /* when it got its GPUs */
	int64_t alive_ms, gone_ms; /* last seen alive, first seen over */
	char how[16];              /* "limit", "cancel", "lingered"; "" where unknown */
	char by[USER_SIZE];        /* who cancelled it */
	char status[4]; /* its exit status, 128 + the signal's number; "" where unknown */
	char name[NAME_SIZE_MAX];
	char command[COMMAND_SIZE_MAX];
};

/* Appends @end.  0 or a negative errno. */
MUST_CHECK int history_append(int dirfd, const struct history_end *end);

/*
 * The same in two steps, for who cannot open it later: the descriptor of the file, made where
 * it is missing, or a negative errno; and the appending itself, 0 or a negative errno.
 */
MUST_CHECK int history_open(int dirfd);
MUST_CHECK int history_write(int fd, const struct history_end *end);

/*
 * Reads at most @most of the newest entries, oldest first, into a new array *@ret (freed by
 * the caller) of *@ret_count.  0, also where there is no history, or a negative errno.
 */
MUST_CHECK int history_read(
	int dirfd, size_t most, struct history_end **ret, size_t *ret_count);

/*
 * Finds the newest entry of ticket @ticket, and one that knows a status rather than one that
 * does not, among the newest HISTORY_SEARCHED; only those of jobs that began (got their GPUs)
 * at @since_ms or later, for numbers begin anew with a new ticket file.  0; HISTORY_NONE; or a
 * negative errno.
 */
enum { HISTORY_NONE = 1, HISTORY_SEARCHED = 32768 };
MUST_CHECK int history_find(
	int dirfd, uint64_t ticket, int64_t since_ms, struct history_end *ret);

/* What the history says of the end of @lease, as seen at @now_ms (CLOCK_BOOTTIME). */
void history_describe(const struct lease *lease, int64_t alive_ms, int64_t gone_ms,
	struct history_end *end);

#endif
