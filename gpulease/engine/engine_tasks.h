/*
 * Tasks of arrays as operands of --status: `219_1`, as Slurm names them.
 */
#ifndef GPULEASE_ENGINE_TASKS_H
#define GPULEASE_ENGINE_TASKS_H

#include "engine_line.h"

/*
 * Replaces each task among the operands of --status in @argv by its id, for command_line_parse()
 * accepts ids alone: asks squeue, and then sacct.  Returns 0, or an exit status after a message.
 */
MUST_CHECK int engine_tasks_replace(const struct engine_line *line, char **argv);

#endif
