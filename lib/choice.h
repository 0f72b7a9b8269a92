/*
 * Which GPUs a job gets, of those that have room for it.  Pure.
 *
 * In this order: what the job prefers; for a share the GPU on which the least stays over
 * (best fit); for several whole GPUs the best links between them, the slowest one first, then
 * their sum, then one NUMA node; then those that leave the rest with the best links to each
 * other (the smallest hole), so that a single one is taken where it hurts later requests
 * least; then one that was not just released, and needs no fresh probe; then the lowest index.
 */
#ifndef GPULEASE_CHOICE_H
#define GPULEASE_CHOICE_H

#include "gpuset.h"
#include "room.h"

/* How near two GPUs are, the nearer the higher. */
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

/* What is known of how the GPUs are linked, by slot. */
struct links {
	int16_t node[GPUSET_MAX]; /* of NUMA, or NODE_UNKNOWN */
	uint8_t level[GPUSET_MAX][GPUSET_MAX];
};

enum { PREFER_MAX = 16 };

/* Slots that a job would rather have, the best first; the others come behind them. */
struct preference {
	uint8_t slots[PREFER_MAX];
	unsigned count;
};

/* What a choice is made from. */
struct choice {
	const struct plan_gpu *gpus; /* by slot */
	const struct room *room;     /* by slot: what is left now */
	const struct links *links;   /* NULL: nothing is known of them */
	struct gpuset from;          /* have room for it; at least ->count of them */
	struct gpuset free;          /* would be left for others, whole */
	unsigned count;
	struct need need;
	const struct preference *prefer;
};

/* The ->count slots that it comes to. */
struct gpuset choose(const struct choice *choice);

#endif
