/*
 * How many tasks the options ask for, and which GPUs the tasks see, by srun's rules for one node.
 * Pure.
 */
#ifndef GPULEASE_TASK_OPTIONS_H
#define GPULEASE_TASK_OPTIONS_H

#include "option_table.h"

/*
 * Whether -n counts tasks: beside one of srun's GPU options, and for srun in a lease.  Else it
 * counts GPUs.
 */
bool task_options_own_n(const struct command_line *line);

/*
 * Sets ->tasks of the settings in @line.  Changes the wishes for GPUs to wishes for all tasks
 * together: `--gpus-per-task 2` for four tasks is one for eight GPUs.  Returns 0, or -EINVAL with
 * the reason in @why.
 */
MUST_CHECK int task_options_settle(
	struct command_line *line, const struct options_result *result, struct why *why);

#endif
