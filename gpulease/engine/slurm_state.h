/*
 * The states of a job of Slurm, and what they mean here.  Pure.
 */
#ifndef GPULEASE_SLURM_STATE_H
#define GPULEASE_SLURM_STATE_H

#include "history.h"

enum slurm_phase { SLURM_WAITS, SLURM_RUNS, SLURM_ENDED };

struct slurm_state {
	const char *name; /* "OUT_OF_MEMORY" */
	enum slurm_phase phase;
	/* of a job that has ended: */
	enum end_state end; /* END_UNKNOWN: its exit status decides */
	int status;         /* the exit status; -1: that of the job */
	const char *words;  /* why it ended, for a message; NULL: it needs none */
};

/*
 * Returns the state that begins @text, as squeue and sacct print it ("CANCELLED by 1000"); an
 * unknown one counts as running, since an end must not be invented.
 */
const struct slurm_state *slurm_state_find(const char *text);

/*
 * Returns @state, or a further one with an end, a status and words of its own: squeue gives @reason
 * for a job that could never start.
 */
const struct slurm_state *slurm_state_with_reason(
	const struct slurm_state *state, const char *reason);

/* Likewise for @text as sacct prints it, which knows no reasons, of a job with these nodes. */
const struct slurm_state *slurm_state_accounted(const char *text, const char *nodes);

/* Whether a job with these nodes, as squeue or sacct prints them, has started. */
bool slurm_has_nodes(const char *nodes);

/*
 * Whether a job may be expected to start after @wait_s: Slurm takes a year for the limit of a job
 * that has none, so a job that waits for that one would start after a year.
 */
bool slurm_is_estimate(int64_t wait_s);

/*
 * Returns the exit status of a job in the state @state whose command ended with @wait_status, as
 * wait(2) returns it: 124 at its time limit, 125 if the cluster failed, 128+n for signal n.
 */
int slurm_state_status(const struct slurm_state *state, int wait_status);

/*
 * Reads `STATUS:SIGNAL`, as sacct prints it, into a status as wait(2) returns it.  Returns 0 or
 * -EINVAL.
 */
MUST_CHECK int slurm_state_read_exit(const char *text, int *ret_wait_status);

#endif
