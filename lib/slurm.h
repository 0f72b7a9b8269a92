/*
 * The texts in which Slurm describes an allocation to its processes, and the name of the state
 * directory for one.  Pure.
 */
#ifndef GPULEASE_SLURM_H
#define GPULEASE_SLURM_H

#include "text.h"

enum { SLURM_GPUS_SIZE = 512, SLURM_NAME_SIZE = 200 };

/* Whether @text is a job id as Slurm gives them: a number above 0. */
bool slurm_is_job_id(const char *text);

/*
 * Writes the GPUs of SLURM_JOB_GPUS or SLURM_STEP_GPUS, "0-2,5", to @out as
 * CUDA_VISIBLE_DEVICES has them, "0,1,2,5".  Returns how many they are; 0: @list is empty, or no
 * such list.
 */
unsigned slurm_read_gpus(const char *list, char out[SLURM_GPUS_SIZE]);

/*
 * Whether the host @host, named with or without its domain, is in the list of nodes @nodes,
 * "login,n[1-3,08-12]-ib".  A list that cannot be read counts as having every host.
 */
bool slurm_has_node(const char *nodes, const char *host);

/*
 * Writes the name of the directory of job @job of @cluster on @host: "slurm-7-testbed@n1".  Each
 * character but letters, digits, `_`, `-` and `.` becomes `_`.  @cluster may be "".
 */
void slurm_directory_name(const char *job, const char *cluster, const char *host,
	char out[SLURM_NAME_SIZE]);

/* Whether @name is such a name; then *@job is the job's id. */
bool slurm_directory_job(const char *name, char job[24]);

#endif
