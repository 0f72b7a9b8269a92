/*
 * The Slurm allocation that this process runs in, as its environment describes it.
 *
 * Two allocations on one node share all namespaces but not the device cgroup: each sees its own
 * cards, numbered from 0.  So each allocation has its own state directory, and its jobs may have
 * only its GPUs.
 */
#ifndef GPULEASE_SLURM_ALLOCATION_H
#define GPULEASE_SLURM_ALLOCATION_H

#include "slurm.h"

/*
 * gpulease sets this variable to "JOB:GPUS" for a command in an allocation.  A gpulease inside the
 * command finds the GPUs of the allocation by it, because the command has lost Slurm's variables.
 */
#define ALLOCATION_VARIABLE "GPULEASE_ALLOCATION"

struct slurm_allocation {
	const char *job;            /* its id; NULL: there is no allocation */
	char name[SLURM_NAME_SIZE]; /* of its state directory */
	const char *nodes;          /* that the allocation has; NULL: not known */
	bool is_elsewhere;          /* this host is not one of its nodes */
	bool is_step;               /* this is a step of the job, with GPUs of its own */
	/* The variable that bounds the GPUs, and its value; NULL: there is none. */
	const char *gpus_by, *gpus;
	char passed[SLURM_GPUS_SIZE + 24]; /* the value of ALLOCATION_VARIABLE */
};

/* Fills in @ret, which points into the environment: the variables must not change afterwards. */
void slurm_allocation_read(struct slurm_allocation *ret);

/* Whether the allocation has GPUs on this host. */
bool slurm_allocation_has_gpus(const struct slurm_allocation *allocation);

/* Prints why the allocation has no GPUs here, and how to ask for some. */
void slurm_allocation_report_no_gpus(const struct slurm_allocation *allocation);

#endif
