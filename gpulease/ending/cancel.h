/*
 * --cancel: takes waiting jobs out of the queue and ends running ones.  Used by the verb and by the
 * runner of a batch.
 *
 * First the cancel request is appended to the ticket file.  It names the job, so from then on no
 * attempt of the job starts.  Then all bells ring, and a waiting job leaves the queue by itself.
 * A job that has not done so after a second, or that runs already, is ended by signals until its
 * lease is over.  A supervisor ends its command itself; at the end of the grace --cancel kills
 * what is left of the command, and the supervisor a moment later.  A shell survives: the processes
 * that it has started on its GPUs are ended, and the GPUs are given back in its name.
 *
 * --cancel may be called by the job that it ends.  Then this process is part of the job, and its
 * callers wait for it.  This process leaves the job: it drops all that it has inherited of it.  The
 * callers are ended with the job, because the job and they would wait for each other.  In a shell's
 * lease they are spared.
 *
 * Killed half-way, --cancel leaves the request, which a waiting job or a supervisor still obeys,
 * and a plain job that has got TERM but will get no KILL.
 */
#ifndef GPULEASE_CANCEL_H
#define GPULEASE_CANCEL_H

#include "settings.h"

/*
 * Cancels the jobs ->verb.operands and waits until they are over; a job that cannot be cancelled
 * does not affect the others.  Asks first if words or ranges choose several jobs and there is a
 * terminal.  Returns the worst exit status: 0; EXIT_NOT_DONE if a job does not exist, has finished,
 * belongs to another user or cannot be ended, if a word or range chooses no job, or if the user has
 * said no; EXIT_MISUSE.  Every failure has been printed.
 */
int cancel_jobs(struct settings *settings);

#endif
