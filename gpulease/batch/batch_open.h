/*
 * Opens all that a batch needs: its jobs file, the folder of its logs, the journal, and the
 * descriptor for signals.
 */
#ifndef GPULEASE_BATCH_OPEN_H
#define GPULEASE_BATCH_OPEN_H

#include "batch_runner.h"

/*
 * Opens *@runner, reads the journal, and finds the jobs of an earlier run that still run.  It
 * checks the jobs file before it creates the folder, so that a bad file leaves no folder.
 * Returns 0, or an exit status after the error was printed; then no job was started.  *@runner
 * points to @settings and into itself: neither may move.
 */
MUST_CHECK int batch_open(struct batch_runner *runner, struct settings *settings);

/*
 * Writes the name of the folder of a batch: --log-dir, or FILE.logs beside the file.  If FILE is a
 * symbolic link, that is beside the file that it leads to, so that two runners of one file find
 * each other's lock.  For standard input it is a new one for each run.
 */
void batch_open_folder(const struct settings *settings, char out[PATH_MAX]);

#endif
