/*
 * A job that waits or runs, for verbs that act on it by its id: --signal-job, --release, --extend.
 */
#ifndef GPULEASE_JOB_TARGET_H
#define GPULEASE_JOB_TARGET_H

#include "context.h"
#include "outcome.h"

struct job_target {
	struct context context;
	struct queue queue;
	struct snapshot view;
	struct outcome_look look;
	/* what follows is of the job that was found last */
	struct outcome job;
	struct ticket ticket;      /* of its latest attempt */
	const struct lease *lease; /* NULL: it has none */
};

/* Opens the shared state.  Returns 0, or an exit status after a message. */
MUST_CHECK int job_target_open(struct settings *settings, struct job_target *target);

/* Reads the state anew.  Returns 0; 1: the job that was found last has ended; or -errno. */
MUST_CHECK int job_target_look(struct job_target *target);

/*
 * Reads the state anew, finds job @number, and checks that it is not over, and that this user owns
 * it or is root.  @verb is for the message: "signal".  Returns 0, or an exit status after a
 * message.
 */
MUST_CHECK int job_target_find(
	struct job_target *target, uint64_t number, const char *verb);

/* Returns the process that owns the job, as its lease says or, without a lease, its ticket. */
const struct owner *job_target_owner(const struct job_target *target);

/* Prints that @error, a negative errno, stops the change of the job.  Returns the exit status. */
int job_target_fail(const struct job_target *target, int error);

/* Prints that the job @problem, as in "has not started yet".  Returns the exit status. */
int job_target_refuse(const struct job_target *target, const char *problem);

#endif
