/*
 * Whether the name of a card is of a type, as people and Slurm's configurations spell types.  Pure.
 */
#ifndef GPULEASE_MODEL_NAME_H
#define GPULEASE_MODEL_NAME_H

#include "base.h"

/*
 * Whether @name, as nvidia-smi prints it, has the parts of @type in their order.  Case, blanks, `-`
 * and `_` do not count: "rtx_2080_ti", "titanrtx" and "a100-80gb" find "NVIDIA GeForce RTX 2080
 * Ti", "NVIDIA TITAN RTX" and "NVIDIA A100-SXM4-80GB".  A number has to be whole: "a10" does not
 * find "NVIDIA A100-SXM4-80GB".
 */
bool model_name_matches(const char *name, const char *type);

#endif
