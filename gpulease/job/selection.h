/*
 * Which GPUs of this machine a job may have, as --gpu-ids, --allow, --except, --model, --min-vram,
 * --vram, --prefer-gpus, CUDA_VISIBLE_DEVICES, a Slurm allocation and the configuration say; and
 * whether the request can ever be met.
 */
#ifndef GPULEASE_SELECTION_H
#define GPULEASE_SELECTION_H

#include "broker.h"
#include "context.h"
#include "gpu_order.h"

enum { LIMITED_SIZE = 96 };

/*
 * Fills in the choice of GPUs in @request.  If the choice needs to know the GPUs, probes first;
 * the result goes to @broker's view.  Sets @limited to "limited to GPU 0 by CUDA_VISIBLE_DEVICES"
 * or the like if the environment bounds the choice, else to "".  Returns 0, or EXIT_MISUSE after
 * it has printed why the request can never be met.
 */
MUST_CHECK int selection_choose(const struct run_request *asked,
	const struct context *context, struct broker *broker, struct request *request,
	char limited[LIMITED_SIZE]);

/*
 * Finds the GPUs that a step of the lease @around may have, in the order of the lease, and how many
 * of them it wants: as many as -n says, else all.  Returns 0 with *@ret and *@ret_wanted, or
 * EXIT_MISUSE after it has printed what the lease lacks.
 */
MUST_CHECK int selection_choose_step(const struct run_request *asked,
	const struct snapshot *view, const struct lease *around, struct gpu_order *ret,
	unsigned *ret_wanted);

#endif
