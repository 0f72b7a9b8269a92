/*
 * A jobs file that its user changes while the batch runs: when to read it again, and reading it.
 * It is never written, and is opened for reading only.
 *
 * inotify watches the folder of the file, so that a file that replaces it is noticed, and follows
 * symbolic links (batch_watch.h).  The file is read at once when a writer closes it or another file
 * takes its name.  While a writer keeps it open, it is read when it was not written for a second.
 * Without inotify it is looked at once a second.
 *
 * "-" is standard input: a file that only grows, and is never read again.
 *
 * A last line without a newline counts only when the file was not written for a second, because
 * the rest of the line may be on its way.  At the first read it always counts.
 *
 * Life cycle: batch_file_open(), batch_file_read() (not for standard input), then in a loop:
 * batch_file_poll() and batch_file_wake_ms(), a wait, batch_file_step().  batch_file_release() at
 * the end.
 */
#ifndef GPULEASE_BATCH_FILE_H
#define GPULEASE_BATCH_FILE_H

#include <poll.h>
#include <sys/stat.h>

#include "batch_watch.h"
#include "text.h"

enum { BATCH_FILE_FDS = 1 };

struct batch_file {
	char path[PATH_MAX]; /* "-": standard input */
	struct batch_watch watch;
	bool is_pipe, is_at_end; /* standard input; its end was read */
	bool is_unsettled;  /* at the last read it had been changed a moment before */
	bool is_missing;    /* the last look found no file */
	int reported_error; /* the error of what is there now, if it was returned; 0 */
	int64_t look_ms; /* when to look next, CLOCK_BOOTTIME; INT64_MAX: at an event */
	struct stat seen, looked; /* the file at the last read, and at the last look */
	char *text;               /* what was read last */
	size_t size, used,
		room; /* ->size: what counts; ->used: with an incomplete last line */
};

#define BATCH_FILE_NONE \
	((struct batch_file){ .watch = BATCH_WATCH_NONE, .look_ms = INT64_MAX })

/*
 * Sets up *@ret for the file @path and checks that it can be opened; reads nothing yet.  Returns 0
 * or a negative errno with the reason in @why.
 */
MUST_CHECK int batch_file_open(const char *path, struct batch_file *ret, struct why *why);

/*
 * Reads the file now: ->text (not NULL) and ->size, whole lines.  Returns 0, or a negative errno
 * with the reason in @why (-EFBIG: more than BATCH_FILE_MAX; -EINVAL: not a regular file); then
 * both are as before.
 */
MUST_CHECK int batch_file_read(struct batch_file *file, struct why *why);

/* Sets @fds to what to poll for, and returns how many there are: 0 or 1. */
unsigned batch_file_poll(
	const struct batch_file *file, struct pollfd fds[BATCH_FILE_FDS]);

/* Returns until when to wait at most, CLOCK_BOOTTIME. */
int64_t batch_file_wake_ms(const struct batch_file *file);

enum batch_file_outcome { BATCH_FILE_CHANGED = 1 };

/*
 * Call this after each wait.  Returns BATCH_FILE_CHANGED if the file has changed and was read; 0 if
 * not; or a negative errno with the reason in @why if the file cannot be read or is gone, once for
 * each state of the file.
 */
MUST_CHECK int batch_file_step(struct batch_file *file, int64_t now_ms, struct why *why);

/*
 * Whether what is there now was not taken over completely: the file has changed since it was read,
 * or has an incomplete last line that does not count yet, or cannot be read and batch_file_step()
 * has not returned that yet.  The next look then happens within BATCH_QUIET_MS.  Standard input has
 * more until its end was read.
 */
bool batch_file_has_more(struct batch_file *file, int64_t now_ms);

void batch_file_release(struct batch_file *file);

#endif
