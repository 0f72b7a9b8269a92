/*
 * Reads the table of `nvidia-smi topo -m`, which says how the GPUs are linked, into numbers.  Pure.
 *
 * NVIDIA promises no form for it.  It is a table with a column for each GPU and each network card,
 * then up to three columns about the CPUs.  The columns are separated by tabs or, if the text was
 * copied by hand, by spaces.  Columns are counted from the left.  The table is invalid if a row has
 * no `X` in its own column.
 */
#ifndef GPULEASE_SMITOPO_H
#define GPULEASE_SMITOPO_H

#include "choice.h"
#include "text.h"

/* The GPUs, in the order of their columns.  Only the first ->count items of each array are set. */
struct smitopo {
	unsigned count;
	bool is_complete; /* each GPU has a row */
	uint16_t index[GPUSET_MAX];
	int16_t node[GPUSET_MAX]; /* NUMA node, the first of a list, or NODE_UNKNOWN */
	uint8_t level[GPUSET_MAX][GPUSET_MAX]; /* LINK_…, the same in both directions */
};

/*
 * Reads the @size bytes at @text.  If the two directions of a link differ, the weaker one counts.
 * Returns 0; or -EBADMSG with the reason in @why, and then *@ret is undefined.
 */
MUST_CHECK int smitopo_parse(
	const char *text, size_t size, struct smitopo *ret, struct why *why);

/* Returns the place in the arrays of the GPU with that index, or -1. */
int smitopo_find(const struct smitopo *topo, int index);

#endif
