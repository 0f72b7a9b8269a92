/*
 * The copies of job scripts that wait or run: ~/.local/state/gpulease/scripts/HOST.NS.RANDOM, one
 * for each job, for its user alone.  The path of the copy is the script's own name ($0), so the
 * script can be read, and submitted again, while the job lives.
 *
 * No process stays only to remove a copy, so none can be killed before it does.  Instead each
 * submission removes the copies that are an hour old and that no process of this host names in its
 * command line: that of the gpulease that waits for GPUs or looks after the job, or that of the
 * script's interpreter.
 *
 * The record of an array (array_record.h) is RANDOM.array beside the copy.
 */
#ifndef GPULEASE_SPOOL_H
#define GPULEASE_SPOOL_H

#include <limits.h>

#include "text.h"

/*
 * Writes the @size bytes at @script to a new copy, and removes old ones.  Returns 0 with its @path,
 * or a negative errno with the reason in @why.
 */
MUST_CHECK int spool_write(
	const char *script, size_t size, char path[PATH_MAX], struct why *why);

/*
 * Writes the path of the file @name of this host in the folder, HOST.NS.NAME; makes the folder.
 * Returns 0 or a negative errno (-ENOENT: there is no home directory).
 */
MUST_CHECK int spool_path(const char *name, char out[PATH_MAX]);

#endif
