/*
 * One job from its command line to its end: checks, the queue, a lease, the command.
 */
#ifndef GPULEASE_RUN_JOB_H
#define GPULEASE_RUN_JOB_H

#include "settings.h"
#include "job_observer.h"

/*
 * Runs the job that @settings ask for; at most one per process.  Reports its progress to @observer;
 * NULL: there is none.  Does not return if this process becomes the command.  Otherwise returns the
 * exit status: of the command, or, after it has printed the reason, a status that says why the
 * command has not run.
 */
int run_job(struct settings *settings, const struct job_observer *observer);

#endif
