/*
 * `gpulease-slurm sbatch`, or this program under the name sbatch: submits a job script.  It reads
 * the options, spools a copy of the script, and runs `gpulease --submit`.
 */
#ifndef GPULEASE_SBATCH_H
#define GPULEASE_SBATCH_H

/* @argv begins with a name.  Returns the exit status. */
int sbatch_main(char **argv);

/* The same for `submit`, `gpulease`, and the words of `gpulease --submit --script FILE`. */
int sbatch_submit_main(char **argv);

#endif
