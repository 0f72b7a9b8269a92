/*
 * `gpulease-slurm script`: the command of a job that sbatch has submitted.  It sets the variables
 * that Slurm sets for a job script, and becomes the script.
 */
#ifndef GPULEASE_SCRIPT_PART_H
#define GPULEASE_SCRIPT_PART_H

/* Executes what @argv, which begins with the word `script`, asks for.  Returns only on failure. */
int script_main(char **argv);

#endif
