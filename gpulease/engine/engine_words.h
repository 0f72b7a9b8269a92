/*
 * The command lines for Slurm's programs that the command line of gpulease asks for.
 */
#ifndef GPULEASE_ENGINE_WORDS_H
#define GPULEASE_ENGINE_WORDS_H

#include "engine_line.h"
#include "slurm_ask.h"

/*
 * Appends the options of srun and sbatch for the job of @line: how many GPUs, tasks and nodes, its
 * limit, its name, its dependencies, and all that is passed on.  Without a wish for tasks or nodes
 * it is one task on one node.  The first of @words is the program, since sbatch writes some
 * differently.  May ask sinfo for the types of GPUs.  Returns 0, or an exit status after a message.
 */
MUST_CHECK int engine_job_words(
	const struct engine_line *line, struct slurm_words *words);

/*
 * Appends "; a node has 2 GPUs at most" if the job of @line asks for more, and if @error, what
 * Slurm says, can mean that.
 */
void engine_add_most(const struct engine_line *line, const char *error, struct text *out);

/* Appends the options that only srun has: those for tasks.  Returns likewise. */
MUST_CHECK int engine_step_words(
	const struct engine_line *line, struct slurm_words *words);

/*
 * Changes to the folder of -D, so that the job begins there.  Returns 0, or an exit status after a
 * message.
 */
MUST_CHECK int engine_enter_folder(const struct engine_line *line);

/*
 * Appends the words that a node executes: the command of @line, behind what has to be done on the
 * node (node_order.h).  The command runs in the present folder.  @merges: its stderr goes where its
 * stdout goes.  Returns 0, or an exit status after a message.
 */
MUST_CHECK int engine_node_words(
	const struct engine_line *line, bool merges, struct slurm_words *words);

#endif
