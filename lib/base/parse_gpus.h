/*
 * Numbers of GPUs that people write, and shares of one GPU.  Pure.  Both functions return as those
 * of parse.h.
 */
#ifndef GPULEASE_PARSE_GPUS_H
#define GPULEASE_PARSE_GPUS_H

#include "text.h"

/*
 * Reads a number of GPUs from 0 to 128 (`2`, `2.0`), or a share of one GPU in whole percent
 * (`0.5`).  For a share *@ret is 1 and *@ret_percent is 1 to 99; else *@ret_percent is 0.
 */
MUST_CHECK int parse_gpu_count(
	const char *text, unsigned *ret, unsigned *ret_percent, struct why *why);

/*
 * Reads the result of a computation, so any fraction: it is rounded up, below 1 to a whole
 * percentage, above 1 to whole GPUs.  Sets the outputs as parse_gpu_count().
 */
MUST_CHECK int parse_gpu_need(
	const char *text, unsigned *ret, unsigned *ret_percent, struct why *why);

#endif
