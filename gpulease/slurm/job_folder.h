/*
 * SLURM_TMPDIR: a folder of its own for each job script.
 *
 * A process beside the job, the keeper, removes the folder when the script and all processes that
 * the job has left have ended, however they end.  It is no part of the job: it has neither the
 * token, nor the tag, nor the FIFO.  Its name is process_lease.h's PROCESS_LEASE_KEEPER.  If it is
 * killed, the folder stays.
 */
#ifndef GPULEASE_JOB_FOLDER_H
#define GPULEASE_JOB_FOLDER_H

#include <limits.h>

#include "base.h"

/*
 * Makes a folder that only its user may enter, in TMPDIR or /tmp, for the job @id with the token
 * @token, whose script this process becomes, and starts its keeper.  Returns 0 with the path in
 * @out, or a negative errno.
 */
MUST_CHECK int job_folder_make(const char *id, const char *token, char out[PATH_MAX]);

#endif
