/*
 * The order in which a job sees its GPUs.  Records and plans know only sets of GPUs.  The order is
 * that of a list: of --gpu-ids, or of the lease around a step.
 */
#ifndef GPULEASE_GPU_ORDER_H
#define GPULEASE_GPU_ORDER_H

#include "snapshot.h"

struct gpu_order {
	unsigned count;
	uint8_t slots[GPUSET_MAX];
};

/*
 * Reads the slots that @list names, in its order, each once.  Returns 0; or a negative errno with
 * the reason in @why, and in *@ret the slots before the item that is wrong.
 */
MUST_CHECK int gpu_order_read(const struct snapshot *view, const char *list,
	struct gpu_order *ret, struct why *why);

/*
 * Returns the GPUs of @set: first those that @list names, in its order, then the others, ascending.
 * NULL and "" name none.
 */
struct gpu_order gpu_order_of(
	const struct snapshot *view, const struct gpuset *set, const char *list);

#endif
