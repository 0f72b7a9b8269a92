/*
 * `gpulease-slurm tasks`: the command of a job with several tasks.  It starts one process for each,
 * all together and in one process group of their own, passes on their output, input and signals,
 * and exits with the highest status.  One task whose output needs no care takes the place of this
 * process instead.
 *
 * If this process is killed, the kernel kills the tasks (PR_SET_PDEATHSIG), so none goes on without
 * the lease.
 */
#ifndef GPULEASE_TASKS_H
#define GPULEASE_TASKS_H

/* Runs what @argv, which begins with the word `tasks`, asks for.  Returns the exit status. */
int tasks_main(char **argv);

#endif
