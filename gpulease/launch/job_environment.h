/*
 * The environment of a job's command: which GPUs it sees, its job id and lease token, and what
 * a gpulease inside the job needs to find the same state directory.
 */
#ifndef GPULEASE_JOB_ENVIRONMENT_H
#define GPULEASE_JOB_ENVIRONMENT_H

#include "lease.h"
#include "text.h"

struct childenv_change;
struct launch;

/* How a GPU is named in a list. */
enum gpu_list_form {
	GPU_LIST_NAMES, /* "0", "1:0": as gpulease prints GPUs */
	GPU_LIST_UUIDS, /* "GPU-…", "MIG-…" */
	GPU_LIST_FOR_CUDA, /* indices; the UUID of a MIG instance, which has no index for CUDA */
};

enum { GPU_LIST_SIZE = GPUSET_MAX * (UUID_SIZE + 1) };

/* Appends the GPUs of the job to @out in their order, with commas between them. */
void job_environment_list_gpus(
	const struct launch *launch, enum gpu_list_form form, struct text *out);

/*
 * Returns the variables of the job, *@ret_count of them.  A variable with the value NULL is to be
 * removed.  The array and its strings are static: they are valid until the next call.
 */
const struct childenv_change *job_environment_variables(
	const struct launch *launch, size_t *ret_count);

/*
 * Makes the environment of the command: that of gpulease, as far as --export lets it through and
 * without the variables of another Slurm job, step or task, plus those of the job.  Returns 0 with
 * *@ret, one block that the caller frees with free(), or -ENOMEM.
 */
MUST_CHECK int job_environment_make(const struct launch *launch, char ***ret);

#endif
