/*
 * From the options for GPUs, tasks and nodes to those of Slurm.  Pure, but for memory that is never
 * freed.
 */
#ifndef GPULEASE_GPU_WORDS_H
#define GPULEASE_GPU_WORDS_H

#include "cluster_gpus.h"
#include "engine_line.h"
#include "slurm_ask.h"

/*
 * Whether the words depend on the types and the shards of the cluster, so that the caller has to
 * ask for these first.
 */
bool gpu_words_need_types(const struct engine_line *line);

/* Whether the line asks for neither tasks nor nodes, so that there is one task. */
bool gpu_words_is_one_task(const struct engine_line *line);

/* Returns how many GPUs a node must have at least for the line, as far as its options tell. */
unsigned gpu_words_of_node(const struct engine_line *line);

/*
 * Appends how many GPUs of which type, and how many tasks and nodes: one task on one node, unless
 * the line asks for tasks or nodes.  @gpus is not read if gpu_words_need_types() is false.  Returns
 * 0, or -EINVAL with the message in @why.
 */
MUST_CHECK int gpu_words_add(const struct engine_line *line,
	const struct cluster_gpus *gpus, struct slurm_words *words, struct why *why);

#endif
