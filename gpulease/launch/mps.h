/*
 * The limits of a job that shares its GPUs, as NVIDIA's MPS enforces them.  Without MPS a share is
 * only the job's promise.
 */
#ifndef GPULEASE_MPS_H
#define GPULEASE_MPS_H

#include "snapshot.h"

/* Values of two variables that a client of MPS reads; "": no limit. */
struct mps_limits {
	/* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE */
	char threads[12];
	/* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "0=9216M,1=9216M" */
	char memory[GPUSET_MAX * 32];
};

/*
 * Whether an MPS control daemon runs where clients look for it: it leaves its pid in a file in
 * $CUDA_MPS_PIPE_DIRECTORY, or in /tmp/nvidia-mps.
 */
bool mps_is_running(void);

/*
 * Sets the limits of a job with @need on each of @gpus; none if the job has whole GPUs.  The GPUs
 * are numbered from 0, as CUDA shows them to the job.
 */
void mps_limit(const struct snapshot *view, const struct gpuset *gpus,
	const struct need *need, struct mps_limits *ret);

#endif
