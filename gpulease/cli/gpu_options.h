/*
 * How many GPUs the options together ask for, and how much of each: -n, --gpus, srun's GPU
 * options, --gpu-ids, --vram, --exclusive.  Pure.
 */
#ifndef GPULEASE_GPU_OPTIONS_H
#define GPULEASE_GPU_OPTIONS_H

#include "option_table.h"

/*
 * Sets ->gpus, ->share_percent, ->model, ->gpus_given and ->need_given of the request in @line.
 * Returns 0, or -EINVAL when two options ask for different things; @why then names both.
 */
MUST_CHECK int gpu_options_settle(
	struct command_line *line, const struct options_result *result, struct why *why);

#endif
