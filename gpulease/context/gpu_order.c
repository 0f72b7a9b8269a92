#include "gpu_order.h"
#include "inventory.h"
#include "operands.h"

static void gpu_order_add(struct gpu_order *order, unsigned slot)
{
	for (unsigned i = 0; i < order->count; i++)
		if (order->slots[i] == slot)
			return;
	order->slots[order->count++] = (uint8_t)slot;
}

int gpu_order_read(const struct snapshot *view, const char *list, struct gpu_order *ret,
	struct why *why)
{
	struct operand_walk walk = OPERAND_LIST(list, OPERAND_GPU);
	struct operand operand;
	int r;

	ret->count = 0;
	while ((r = operand_next(&walk, &operand, why)) == 0) {
		struct operand one = operand;

		for (uint64_t index = operand.first; index <= operand.last; index++) {
			struct gpuset named = GPUSET_NONE;

			one.first = one.last = index;
			r = inventory_by_operand(view, &one, &named, why);
			if (r < 0)
				return r;
			gpuset_for_each (slot, &named)
				gpu_order_add(ret, (unsigned)slot);
		}
	}
	return r == OPERAND_DONE ? 0 : r;
}

struct gpu_order gpu_order_of(
	const struct snapshot *view, const struct gpuset *set, const char *list)
{
	struct gpu_order named = { .count = 0 }, order = { .count = 0 };
	struct why why;

	/* a step reads the list from its environment; a changed list only changes the order */
	if (list && list[0])
		(void)!gpu_order_read(view, list, &named, &why);
	for (unsigned i = 0; i < named.count; i++)
		if (gpuset_has(set, named.slots[i]))
			gpu_order_add(&order, named.slots[i]);
	gpuset_for_each (slot, set)
		gpu_order_add(&order, (unsigned)slot);
	return order;
}
