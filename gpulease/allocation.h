/*
 * The Slurm allocation that this process runs in, as its environment describes it.
 *
 * Two allocations on one node share all namespaces but not the device cgroup: each sees its own
 * cards, numbered from 0.  So each has a state directory of its own, and the GPUs that a job may
 * have are those of the allocation.
 */
#ifndef GPULEASE_ALLOCATION_H
#define GPULEASE_ALLOCATION_H

#include "slurm.h"

/*
 * In the environment of a command in an allocation: "JOB:GPUS", so that a gpulease inside finds
 * the GPUs of the allocation again although the variables of the step are dropped.
 */
#define ALLOCATION_VARIABLE "GPULEASE_ALLOCATION"

struct allocation {
	const char *job;            /* its id; NULL: there is no allocation */
	char name[SLURM_NAME_SIZE]; /* of its state directory */
	const char *nodes;          /* of the allocation; NULL: not known */
	bool is_elsewhere;          /* this host is none of its nodes */
	bool is_step;               /* this is a step of the job, with GPUs of its own */
	/* The variable that bounds the GPUs, and its value; NULL: there is none. */
	const char *gpus_by, *gpus;
	char passed[SLURM_GPUS_SIZE + 24]; /* the value of ALLOCATION_VARIABLE */
};

/* Reads it from the environment, to which @ret then points: it has to stay as it is. */
void allocation_read(struct allocation *ret);

/* Whether the allocation has GPUs here; if not, allocation_refuse() says why. */
bool allocation_has_gpus(const struct allocation *allocation);
void allocation_refuse(const struct allocation *allocation);

#endif
