/*
 * The choice: which of the GPUs that have room for a job it gets.  Pure.
 *
 * These count, in this order:
 *
 * 1. the preference of the job;
 * 2. for a part of a GPU, the GPU on which least is left (best fit), and of several such GPUs one
 *    that is in use already: so whole GPUs stay free;
 * 3. for several whole GPUs, the best links between them: the slowest link, then the sum of all
 *    links, then one NUMA node;
 * 4. the links of the GPUs that stay free: a job that needs one GPU gets one that is linked badly
 *    to the others, where later requests miss it least;
 * 5. for whole GPUs, one that was not just released, because it needs no fresh probe;
 * 6. the lowest index.
 */
#ifndef GPULEASE_CHOICE_H
#define GPULEASE_CHOICE_H

#include "gpuset.h"
#include "room.h"

/* How near two GPUs are: the nearer, the higher. */
enum {
	LINK_UNKNOWN,
	LINK_SYS,     /* across sockets */
	LINK_NODE,    /* one NUMA node */
	LINK_PHB,     /* one PCIe host bridge */
	LINK_PXB,     /* several PCIe switches */
	LINK_PIX,     /* one PCIe switch */
	LINK_NV = 16, /* + the number of NVLinks */
	LINK_SELF = 255,
};

enum { NODE_UNKNOWN = -1 };

/* How the GPUs are linked, by slot. */
struct links {
	int16_t node[GPUSET_MAX]; /* the NUMA node, or NODE_UNKNOWN */
	uint8_t level[GPUSET_MAX][GPUSET_MAX];
};

enum { PREFER_MAX = 16 };

/* The slots that a job prefers, the best first.  All other slots come after them. */
struct preference {
	uint8_t slots[PREFER_MAX];
	unsigned count;
};

/* What a choice is made from. */
struct choice {
	const struct plan_gpu *gpus; /* by slot */
	const struct room *room;     /* by slot: what is left now */
	const struct links *links;   /* NULL: not known */
	struct gpuset from;          /* GPUs with room for the job; at least ->count */
	struct gpuset free;          /* GPUs that are free as a whole */
	unsigned count;              /* how many GPUs the job needs */
	struct need need;
	const struct preference *prefer;
};

/* Chooses ->count slots of ->from. */
struct gpuset choose(const struct choice *choice);

#endif
