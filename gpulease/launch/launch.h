/*
 * Starting the command of a job: this process sets itself up as the command needs it (files,
 * environment, CPUs, tag) and executes it.
 *
 * A plain job has no parent of ours: gpulease itself becomes the command, so its pid stays the
 * owner of the lease.  A time limit and the end of such a job are the watchdog's work
 * (watchdog.h), which is started here.  A supervised job (supervise.h) calls launch() in its child.
 *
 * A crash in here leaves a lease with a dead owner: it is void, as after a command that was killed.
 */
#ifndef GPULEASE_LAUNCH_H
#define GPULEASE_LAUNCH_H

#include "context.h"
#include "redirect.h"
#include "snapshot.h"
#include "step_lock.h"

/* What the command gets: of its job's own lease, or of the lease that it is a step of. */
struct launch {
	const struct context *context;
	const struct snapshot *view;    /* names the GPUs */
	const struct owner *owner;      /* of the lease */
	uint64_t ticket;                /* the id of the job */
	uint32_t attempt;               /* 0 or 1: the first */
	const struct ticket *leaseless; /* of a job without GPUs: its ticket; else NULL */
	struct gpuset gpus;
	const char *order; /* a list, for gpu_order_of(): how the command sees the GPUs */
	struct need need;  /* on each of the GPUs */
	/* the lease's FIFO, which the command or the watchdog inherits; -1: a step inherits it */
	int live_fd;
	const struct step_lock
		*step;  /* its number and its locks; NULL: this is no step */
	unsigned level; /* how many exclusive steps the command is in */
	const char *program;
	char **command;
	bool is_supervised;                    /* a supervisor does the watchdog's work */
	const struct redirection *redirection; /* NULL: open the files of the settings */
};

/*
 * Starts the watchdog of the lease, or of the step, if one is needed: the job has a time limit or
 * a notifier, or the history is to say how it ends.  @is_shell: see struct watchdog_order.  Returns
 * 0, also if none is needed, or a negative errno; no watchdog runs then.
 */
MUST_CHECK int launch_watchdog(const struct launch *launch, bool is_shell);

/*
 * Returns which process records the end of the job, as the lease names it: one of RECORDER_…, or
 * NULL if none does.
 */
const char *launch_recorder(const struct context *context);

/*
 * For a supervisor that is about to end because its command has ended: starts a witness
 * (watchdog.h) if the command has left processes.  The lease is then not over for readers that
 * cannot see these processes.  After @left_ms the time limit of the job ends, and the witness ends
 * them; 0: there is no limit.  Does nothing if the FIFO was given up (->live_fd is -1).
 */
void launch_witness(const struct launch *launch, int64_t left_ms);

/*
 * Sets the environment, redirects, and executes the command in place of this process.  Returns only
 * if that fails: the exit status, after it has printed the reason.
 */
int launch(const struct launch *launch);

#endif
