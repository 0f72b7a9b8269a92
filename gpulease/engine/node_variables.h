/*
 * The environment of a command on a node, and the GPUs in its arguments.
 */
#ifndef GPULEASE_NODE_VARIABLES_H
#define GPULEASE_NODE_VARIABLES_H

#include "node_order.h"

/*
 * Makes the environment of the command: what srun or sbatch has brought, as far as --export lets it
 * through, with all variables of Slurm, and GPULEASE_ID, GPULEASE_GPUS and GPULEASE_ALLOCATION.
 * GPULEASE_ENGINE is removed, so that a gpulease inside uses the GPUs of the job.  @attempt counts
 * from 1.  Returns 0 with *@ret, which the caller frees with free(), or -ENOMEM.
 */
MUST_CHECK int node_environment_make(
	const struct node_order *order, unsigned attempt, char ***ret);

/*
 * Fills the placeholders and the option of --inject in @command, of which the first @fixed words
 * stay.  Returns 0 with *@ret, which the caller frees with free(); -EINVAL after a message: there
 * is a placeholder without a value here; or -ENOMEM.
 */
MUST_CHECK int node_fill(
	const struct node_order *order, char **command, size_t fixed, char ***ret);

#endif
