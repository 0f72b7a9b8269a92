/*
 * What nvidia-smi says of how its GPUs are linked (`topo -m`), into numbers.  Pure.
 *
 * Its form is promised to nobody: a table with a column for each GPU and each network card,
 * then up to three about the CPUs, between tabs or, copied by hand, spaces.  Columns are taken
 * by their place, counted from the left, and a row whose own column does not say so is none.
 */
#ifndef GPULEASE_SMITOPO_H
#define GPULEASE_SMITOPO_H

#include "choice.h"
#include "text.h"

/* The GPUs in the order of their columns.  Only the first ->count of all arrays is set. */
struct smitopo {
	unsigned count;
	bool is_complete; /* each has a row of its own */
	uint16_t index[GPUSET_MAX];
	int16_t node[GPUSET_MAX]; /* of NUMA, the first of a list, or NODE_UNKNOWN */
	uint8_t level[GPUSET_MAX][GPUSET_MAX]; /* LINK_…, the same in both directions */
};

/*
 * Reads the @size bytes at @text.  A link of which the two directions say different things is
 * the weaker one.  0, or -EBADMSG with the reason in @why; then *@ret holds nothing of use.
 */
MUST_CHECK int smitopo_parse(
	const char *text, size_t size, struct smitopo *ret, struct why *why);

/* The place of the GPU with that index, -1 where there is none. */
int smitopo_find(const struct smitopo *topo, int index);

#endif
