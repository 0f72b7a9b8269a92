/*
 * The texts by which Slurm describes an allocation to its processes, and the name of the state
 * directory that an allocation gets.  Pure.
 */
#ifndef GPULEASE_SLURM_H
#define GPULEASE_SLURM_H

#include "text.h"

enum { SLURM_GPUS_SIZE = 512, SLURM_NAME_SIZE = 200 };

/* Whether @text is a Slurm job id: a number above 0. */
bool slurm_is_job_id(const char *text);

/*
 * Reads @list, the value of SLURM_JOB_GPUS or SLURM_STEP_GPUS ("0-2,5"), and writes it to @out in
 * the form of CUDA_VISIBLE_DEVICES ("0,1,2,5").  Returns the number of GPUs; 0 if @list is empty or
 * malformed.
 */
unsigned slurm_read_gpus(const char *list, char out[SLURM_GPUS_SIZE]);

/*
 * Whether @host, with or without its domain, is in the node list @nodes, "login,n[1-3,08-12]-ib".
 * A malformed list counts as having every host.
 */
bool slurm_has_node(const char *nodes, const char *host);

/*
 * Writes the name of the directory for job @job of @cluster (which may be "") on @host:
 * "slurm-7-testbed@n1".  Every character except letters, digits, `_`, `-` and `.` becomes `_`.
 */
void slurm_directory_name(const char *job, const char *cluster, const char *host,
	char out[SLURM_NAME_SIZE]);

/* Whether @name has the form of such a name.  Then @job is set to the job's id. */
bool slurm_directory_job(const char *name, char job[24]);

#endif
