/*
 * squeue: lists the jobs of gpulease as Slurm does.
 */
#ifndef GPULEASE_SQUEUE_H
#define GPULEASE_SQUEUE_H

/* Runs squeue with its words; the first is its name.  Returns the exit status. */
int squeue_main(char **argv);

#endif
