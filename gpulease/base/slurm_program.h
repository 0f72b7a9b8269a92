/*
 * gpulease-slurm, the program beside this one that does without rights what users of Slurm expect.
 */
#ifndef GPULEASE_SLURM_PROGRAM_H
#define GPULEASE_SLURM_PROGRAM_H

#include "other_program.h"

#define SLURM_PROGRAM "gpulease-slurm"

/*
 * Becomes gpulease-slurm (other_program_become()) for a @name of which no job is known, if it can
 * be a task of an array, such as 17_3 or 17_[1-3].  gpulease-slurm then executes gpulease again,
 * with ids in their place.
 */
void slurm_program_ask(const char *name);

/*
 * The same for a command line that cannot be read, if --script FILE or --mpi=list comes before a
 * command, or --status before such a name.  Options before --script may be those of sbatch alone,
 * such as --array=0-3, or --wait without a value.
 */
void slurm_program_try_line(void);

#endif
