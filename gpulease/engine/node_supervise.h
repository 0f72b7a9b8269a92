/*
 * On a node: the parent of a command that has a limit or may be tried again.
 *
 * Slurm signals all processes of a step, but of a batch job perhaps this process alone.  So a
 * signal that has reached only this process is passed on (job_control.h).
 */
#ifndef GPULEASE_NODE_SUPERVISE_H
#define GPULEASE_NODE_SUPERVISE_H

#include "node_order.h"

/* Whether the order needs a parent of the command. */
bool node_needs_parent(const struct node_order *order);

/*
 * Runs @become in a child for each attempt, and does what @order says.  @become makes its process
 * the command and returns an exit status only if that fails.  Returns the exit status.
 */
int node_supervise(const struct node_order *order,
	int (*become)(const void *context, unsigned attempt), const void *context);

#endif
