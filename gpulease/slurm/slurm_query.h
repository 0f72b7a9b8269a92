/*
 * Runs gpulease for squeue, scancel and scontrol, and keeps what it prints.
 */
#ifndef GPULEASE_SLURM_QUERY_H
#define GPULEASE_SLURM_QUERY_H

#include "slurm_jobs.h"

/* The caller releases the texts with slurm_answer_release(). */
struct slurm_answer {
	int status; /* its exit status, or 128 and the number of a signal */
	char *out, *err;
	size_t out_size, err_size;
};

/*
 * Runs gpulease with @words, and sets the first of them to its path.  Returns 0, or a negative
 * errno after a message.
 */
MUST_CHECK int slurm_query_run(char **words, struct slurm_answer *ret);

void slurm_answer_release(struct slurm_answer *answer);

/* Prints what gpulease has printed on its stderr. */
void slurm_answer_repeat(const struct slurm_answer *answer);

/*
 * Adds jobs to @jobs: those in @ids, which has commas, as far as they are known;
 * or without @ids all that wait or run.  Returns 0, or a negative errno after a message.
 */
MUST_CHECK int slurm_query_jobs(const char *ids, struct slurm_jobs *jobs);

/* Adds the jobs that have ended within SLURM_MEMORY_MS. */
MUST_CHECK int slurm_query_ended(struct slurm_jobs *jobs);

#endif
