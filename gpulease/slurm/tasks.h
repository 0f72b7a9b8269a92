/*
 * `gpulease-slurm tasks`: the command of a job with several tasks.  It starts one process for each,
 * all together and in one process group of their own, passes on their output, input and signals,
 * and exits with the highest status.  With --pty task 0 stays in the group of this process, which
 * has the terminal, and each other task has a session of its own.
 *
 * A single task without labels and files replaces this process.
 *
 * If this process is killed, the kernel kills the tasks (PR_SET_PDEATHSIG), so none goes on without
 * the lease.
 */
#ifndef GPULEASE_TASKS_H
#define GPULEASE_TASKS_H

/* Runs what @argv, which begins with the word `tasks`, asks for.  Returns the exit status. */
int tasks_main(char **argv);

#endif
