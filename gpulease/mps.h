/*
 * The limits of a share, where NVIDIA's MPS is there to enforce them.  Without it a share is a
 * promise of the job's, and no wall.
 */
#ifndef GPULEASE_MPS_H
#define GPULEASE_MPS_H

#include "snapshot.h"

/* What a client of MPS is told in its environment; "": nothing. */
struct mps_limits {
	char threads[12]; /* CUDA_MPS_ACTIVE_THREAD_PERCENTAGE */
	char memory[GPUSET_MAX *
		    32]; /* CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, "0=9216M,1=9216M" */
};

/*
 * Whether a control daemon of MPS runs where clients look for it: CUDA_MPS_PIPE_DIRECTORY, or
 * /tmp/nvidia-mps.  It leaves its pid in a file there.
 */
bool mps_is_running(void);

/*
 * The limits of a job with @need on each of @gpus: nothing where it has them alone.  CUDA
 * counts the GPUs that it shows the job from 0.
 */
void mps_limit(const struct snapshot *view, const struct gpuset *gpus,
	const struct need *need, struct mps_limits *ret);

#endif
