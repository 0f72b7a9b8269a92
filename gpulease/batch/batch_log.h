/*
 * Files in the folder of a batch beside its journal: the log of each job, and files that are
 * replaced as a whole.  All are opened with the user's rights.
 *
 * A crash may leave an empty log, which the job's next start uses, and NAME.new, which the next
 * batch_folder_write() removes.
 */
#ifndef GPULEASE_BATCH_LOG_H
#define GPULEASE_BATCH_LOG_H

#include "batch_journal.h"

/*
 * Appends the name of the log of job @number to @out: NUMBER-NAME.log, where NAME is @name or,
 * without one, the word of @command that says most about it.  Pure.
 */
void batch_log_name(
	uint64_t number, const char *name, const char *command, struct text *out);

/*
 * Opens the log of job @number for reading and appending, and creates it if it is missing.  NAME in
 * its name has only letters, digits and `._+-`.  With @is_first, a log that is there already and
 * not empty is renamed to NUMBER-NAME.log~.  Returns a descriptor, which the caller closes, or a
 * negative errno; sets @path, the log's name with the folder, in any case.
 */
MUST_CHECK int batch_log_open(const struct batch_journal *journal, uint64_t number,
	const char *name, const char *command, bool is_first, char path[PATH_MAX]);

/*
 * Replaces the file @name in the folder by the @size bytes at @text: temporary file and rename, so
 * that a reader sees the old or the new text.  Returns 0 or a negative errno.
 */
MUST_CHECK int batch_folder_write(const struct batch_journal *journal, const char *name,
	const char *text, size_t size);

#endif
