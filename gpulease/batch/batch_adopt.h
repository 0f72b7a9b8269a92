/*
 * Jobs at work that are not children of this runner: those of a runner that has died, and
 * commands that outlived their killed supervisor.
 *
 * No message and no SIGCHLD comes from them.  The runner learns of their attempts and their end
 * from the journal, which their supervisors write, and of their death from their owner process,
 * their live FIFO and the ticket (liveness.h).
 */
#ifndef GPULEASE_BATCH_ADOPT_H
#define GPULEASE_BATCH_ADOPT_H

#include "batch_runner.h"

/*
 * Adopts the jobs that the journal, which was just read, has as running.  Those that still live go
 * into ->active; the others become new jobs, unless the journal has their end by now.
 */
void batch_adopt_all(struct batch_runner *runner);

/*
 * Looks after all jobs at work that are not children: takes over what the journal says of them,
 * records the end of those that are dead, and adds what to wait for to ->watch.  Call this at each
 * turn of the runner.
 */
void batch_adopt_check(struct batch_runner *runner);

/*
 * Asks @job, any job at work, child or adopted, to end: TERM.  A command without a supervisor is
 * cancelled, with KILL after the grace period; for all others the caller sends KILL itself.
 */
void batch_adopt_stop(struct batch_runner *runner, struct batch_job *job);

#endif
