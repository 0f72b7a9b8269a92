/*
 * A jobs file that its owner changes while it is worked through: when to read it again, and
 * reading it.  It is never written, and opened for reading alone.
 *
 * inotify watches the folder that it is in, so that a file that replaces it is seen, and links
 * are followed.  When somebody closes it after writing, or puts another in its place, it is
 * read at once; while somebody writes and keeps it open, once it has been left alone for a
 * second.  Where there is no inotify to be had it is looked at once a second.
 *
 * "-" is standard input: what comes is a file that only grows, and is never read again.
 *
 * The last line counts when it has its newline, or when the file has been left alone for a
 * second: somebody may be about to write the rest of it.  At first it counts in any case.
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
	bool is_pipe, is_at_end;
	bool is_unsettled; /* when it was read last, it was changed a moment ago */
	bool is_missed;    /* it was not there when it was looked at last */
	int told;          /* the error that was told of what is there now, 0 */
	int64_t look_ms;   /* when to look next, CLOCK_BOOTTIME; INT64_MAX: at an event */
	struct stat seen, looked; /* as it was when it was read, and looked at, last */
	char *text;               /* what was read last */
	size_t size, used, room;  /* @used: with a line that is not whole yet */
};

#define BATCH_FILE_NONE \
	((struct batch_file){ .watch = BATCH_WATCH_NONE, .look_ms = INT64_MAX })

/*
 * Begins with the file @path, of which nothing is read yet.  0 or a negative errno with the
 * reason in @why.
 */
MUST_CHECK int batch_file_open(const char *path, struct batch_file *ret, struct why *why);

/*
 * Reads it now: ->text (not NULL) and ->size, whole lines.  0, or a negative errno with the
 * reason in @why (-EFBIG beyond BATCH_FILE_MAX; -EINVAL: no regular file): then both are as
 * before.
 */
MUST_CHECK int batch_file_read(struct batch_file *file, struct why *why);

/* What to wait for: 0 or 1 descriptors in @fds; and until when at most (CLOCK_BOOTTIME). */
unsigned batch_file_poll(
	const struct batch_file *file, struct pollfd fds[BATCH_FILE_FDS]);
int64_t batch_file_wake_ms(const struct batch_file *file);

/*
 * After each wait.  1: it has changed and was read; 0: it has not; a negative errno with the
 * reason in @why, once for each state of the file: it cannot be read, or is gone.
 */
MUST_CHECK int batch_file_step(struct batch_file *file, int64_t now_ms, struct why *why);

/*
 * Whether there is more to come of what is there already: the file was changed and not read
 * since, or read but for a last line that was not whole; or it is gone or cannot be read, and
 * batch_file_step() has not said so yet.  Then it is looked at within BATCH_QUIET_MS.  Of
 * standard input: whether it has not ended.
 */
bool batch_file_is_behind(struct batch_file *file, int64_t now_ms);

void batch_file_release(struct batch_file *file);

#endif
