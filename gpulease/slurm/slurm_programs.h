/*
 * Where gpulease and its links lie, seen from this program: in PREFIX/lib/gpulease, or beside it in
 * the folder of a build.
 */
#ifndef GPULEASE_SLURM_PROGRAMS_H
#define GPULEASE_SLURM_PROGRAMS_H

#include <limits.h>

#include "base.h"

/* Each sets @out and returns 0, or -ENOENT: the file of this program; gpulease; ... */
MUST_CHECK int slurm_programs_own(char out[PATH_MAX]);
MUST_CHECK int slurm_programs_gpulease(char out[PATH_MAX]);
/* ... and the folder of the links, if it has an srun. */
MUST_CHECK int slurm_programs_links(char out[PATH_MAX]);

#endif
