/*
 * Edits: what the lines of the jobs file, which its user may change at any time, mean for the
 * jobs.
 */
#ifndef GPULEASE_BATCH_EDIT_H
#define GPULEASE_BATCH_EDIT_H

#include "batch_runner.h"

/*
 * Parses the text of ->file, gives each line its job and each new line a new job, and recalls or
 * cancels the waiting and running jobs if their lines changed.  New jobs and their order are in the
 * journal before anything else happens, so that after a crash no job runs that the next runner
 * cannot find.
 *
 * Returns 0.  On -EINVAL a line is wrong, and @why says which: the lines in force stay, except that
 * on standard input the lines before the wrong one are taken over if there are more of them than
 * before.  Another negative errno (no memory, the journal cannot be written) also has its reason in
 * @why, and the caller may try again later.
 */
MUST_CHECK int batch_edit_apply(struct batch_runner *runner, struct why *why);

/*
 * Applies to the jobs at work what their lines already said when they were busy: `cancel`, and
 * edits of jobs that now wait for another attempt, or that had just started.  Call this at each
 * turn of the runner.
 */
void batch_edit_review(struct batch_runner *runner);

#endif
