/*
 * Becoming the command.
 */
#ifndef GPULEASE_LAUNCH_H
#define GPULEASE_LAUNCH_H

#include "context.h"
#include "redirect.h"
#include "snapshot.h"

/* What the command gets, of its own lease or of the one that it is a step of. */
struct launch {
	const struct context *context;
	const struct snapshot *view; /* names the GPUs */
	const struct owner *owner;   /* of the lease */
	uint64_t ticket;             /* the id of the job */
	uint32_t attempt;            /* 0 or 1: the first */
	struct gpuset gpus;
	struct need need; /* of each of them */
	int live_fd; /* the lease's FIFO, to be held; -1: a step holds its own already */
	const char *program;
	char **command;
	bool is_supervised; /* somebody looks after it: no watchdog need */
	const struct redirection *redirection; /* NULL: as the settings say */
};

/*
 * The variables of the job, *@ret_count of them; good until the next call.  Those without a
 * value are not to be set.
 */
struct childenv_change;
const struct childenv_change *launch_variables(
	const struct launch *launch, size_t *ret_count);

/*
 * Starts the watchdog of the lease, or of the step, where one is wanted: there is a time limit,
 * or the end of the lease is to be told.  @is_shell as in struct watchdog_order.  0, also where
 * none is wanted, or a negative errno.
 */
MUST_CHECK int launch_watchdog(const struct launch *launch, bool is_shell);

/* The recorder to name in the job's lease: RECORDER_…; NULL: there is none. */
const char *launch_recorder(const struct context *context);

/*
 * For a supervisor that is about to end because its command has ended: starts a witness
 * (watchdog.h) if the command has left processes, so that the lease is not over for readers that
 * cannot see these processes.  Starts nothing if the FIFO was given up (->live_fd is -1).
 */
void launch_witness(const struct launch *launch);

/*
 * Exports the GPUs, redirects, and executes.  Returns only where that fails, with the exit
 * status, after an error was told.
 */
int launch(const struct launch *launch);

#endif
