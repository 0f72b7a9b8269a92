/*
 * The journal of a batch: FOLDER/journal.jsonl, where FOLDER is that of --log-dir, or FILE.logs
 * beside the jobs file.  It holds one event per line (batch_event.h).  The runner and the
 * supervisors of its jobs append to it at the same time, each line in one write with O_APPEND.
 *
 * FOLDER/lock keeps two runners apart.  The runner holds its flock, and so does each job that has
 * not started its command yet, because it inherits the descriptor.  So no runner begins while a
 * job may still start that is not in the journal: the children of a killed runner notice its death
 * and close the lock at once.  The text of the file (pid, start of the run) only serves the error
 * message.
 *
 * All files are opened with the user's rights.  A crash leaves at most an incomplete last line; a
 * reader skips it, and the next writer puts a newline after it.
 */
#ifndef GPULEASE_BATCH_JOURNAL_H
#define GPULEASE_BATCH_JOURNAL_H

#include <limits.h>

#include "batch_jobs.h"

struct batch_journal {
	char folder[PATH_MAX];
	int folder_fd, fd, lock_fd;
	int64_t read; /* how many bytes of the journal were read: whole lines */
};

#define BATCH_JOURNAL_NONE \
	((struct batch_journal){ .folder_fd = -1, .fd = -1, .lock_fd = -1 })

/*
 * Creates @folder if it is missing, takes the lock, and opens the journal, which is created if it
 * is missing.  Waits up to 5 seconds for jobs of a killed runner that still hold the lock.
 * Returns 0, -EBUSY (another runner works on it) or another negative errno, with the reason in
 * @why.  Sets *@ret only when it returns 0; batch_journal_release() closes it.
 */
MUST_CHECK int batch_journal_open(
	const char *folder, struct batch_journal *ret, struct why *why);

/*
 * Renames the journal to journal.jsonl~ and creates an empty one.  Returns 0 or a negative errno
 * with the reason in @why.  A crash between the two steps leaves no journal, as in a new folder.
 */
MUST_CHECK int batch_journal_renew(struct batch_journal *journal, struct why *why);

/*
 * Appends one event, or the @size bytes of whole lines at @lines, to @fd.  If the file ends with an
 * incomplete line, a newline goes before them in the same write.  Returns 0 or a negative errno:
 * -ENOSPC if the disk is full, when a part of it may have been written; -ENOENT if the journal was
 * removed.
 */
MUST_CHECK int batch_journal_append(int fd, const struct batch_event *event);
MUST_CHECK int batch_journal_append_lines(int fd, const char *lines, size_t size);

/* Closes all descriptors, and with them the lock unless a job that has not started holds it. */
void batch_journal_release(struct batch_journal *journal);

#endif
