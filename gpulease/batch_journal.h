/*
 * The journal of a batch: FOLDER/journal.jsonl, where FOLDER is that of --log-dir, or FILE.logs
 * beside the jobs file.  It is only appended to, an event a line (batch_event.h), each in one
 * write, by the runner and by the supervisors of the jobs.
 *
 * FOLDER/lock says who uses it: the runner has its flock, and each job that has not started yet
 * has it too, through the same open file.  So nobody begins where a job might yet start that
 * the journal does not know of; a runner that was killed leaves jobs that let go of it at once,
 * for they see that it has gone.  Its text (the pid, since when) only says whom to ask.
 *
 * All files are opened with the user's rights.  A crash leaves at most a last line that is no
 * whole one: it is skipped, and the next begins after a newline.
 */
#ifndef GPULEASE_BATCH_JOURNAL_H
#define GPULEASE_BATCH_JOURNAL_H

#include <limits.h>

#include "batch_jobs.h"

struct batch_journal {
	char folder[PATH_MAX];
	int folder_fd, fd, lock_fd;
	int64_t read; /* bytes that were read of it: whole lines */
};

#define BATCH_JOURNAL_NONE \
	((struct batch_journal){ .folder_fd = -1, .fd = -1, .lock_fd = -1 })

/*
 * Makes the folder where it is missing, takes the lock and opens the journal, which is new
 * where there was none.  0; -EBUSY: another runner has it; another negative errno; always with
 * the reason in @why.
 */
MUST_CHECK int batch_journal_open(
	const char *folder, struct batch_journal *ret, struct why *why);

/*
 * Reads all of it into the empty @jobs, and the last list into *@ret_list (numbers, each once,
 * to be freed; NULL where there is none).  Those that have ended are ->is_of_before.  What
 * cannot be read is skipped and counted in *@ret_skipped; jobs whose BATCH_SEEN that was are
 * there all the same, without key and command.  0 or a negative errno with the reason in @why
 * (-EFBIG: more than 256 MiB); then @jobs is empty.
 */
MUST_CHECK int batch_journal_load(struct batch_journal *journal, struct batch_jobs *jobs,
	uint64_t **ret_list, size_t *ret_list_count, size_t *ret_skipped,
	struct why *why);

/*
 * Tells @hear of each event that has come since it was read the last time, in order; what is no
 * whole line yet is left for later, what cannot be read is skipped.  0 or a negative errno: what
 * follows is told the next time.
 */
MUST_CHECK int batch_journal_read_on(struct batch_journal *journal,
	void (*hear)(void *arg, const struct batch_event *event), void *arg);

/* Puts it aside, as journal.jsonl~, and begins a new one.  As above. */
MUST_CHECK int batch_journal_renew(struct batch_journal *journal, struct why *why);

/*
 * Appends one event, or the @size bytes of whole lines at @lines, to @fd; after a newline where
 * the last line is no whole one.  0 or a negative errno; -ENOSPC: a part of it may be there;
 * -ENOENT: the journal was removed.
 */
MUST_CHECK int batch_journal_append(int fd, const struct batch_event *event);
MUST_CHECK int batch_journal_append_lines(int fd, const char *lines, size_t size);

/* Appends the name of the log of job @number in the folder: NUMBER-NAME.log.  Pure. */
void batch_log_name(
	uint64_t number, const char *name, const char *command, struct text *out);

/*
 * Opens the log of job @number, for reading and appending: FOLDER/NUMBER-NAME.log, in which
 * NAME is @name or else of @command, and nothing but letters, digits and `._+-`.  Where
 * @is_first one that is there already steps aside, to NAME~.  Returns a descriptor or a
 * negative errno; @path is its name in any case.
 */
MUST_CHECK int batch_log_open(const struct batch_journal *journal, uint64_t number,
	const char *name, const char *command, bool is_first, char path[PATH_MAX]);

/* Writes FOLDER/@name anew, at once: temporary file and rename.  0 or -errno. */
MUST_CHECK int batch_folder_write(const struct batch_journal *journal, const char *name,
	const char *text, size_t size);

void batch_journal_release(struct batch_journal *journal);

#endif
