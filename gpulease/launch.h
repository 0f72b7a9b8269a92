/*
 * Becoming the command.
 */
#ifndef GPULEASE_LAUNCH_H
#define GPULEASE_LAUNCH_H

#include "context.h"
#include "snapshot.h"

/* What the command gets, of its own lease or of the one that it is a step of. */
struct launch {
	const struct context *context;
	const struct snapshot *view; /* names the GPUs */
	const struct owner *owner;   /* of the lease */
	uint64_t ticket;             /* its number */
	struct gpuset gpus;
	struct need need; /* of each of them */
	int live_fd; /* the lease's FIFO, to be held; -1: a step holds its own already */
	const char *program;
};

/*
 * Exports the GPUs, redirects, and executes.  Returns only where that fails, with the exit
 * status, after an error was told.
 */
int launch(const struct launch *launch);

#endif
