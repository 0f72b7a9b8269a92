/*
 * `gpulease-slurm ids`: gpulease executes it with its command line if that names jobs as 17_3 or
 * 17_[1-3], which gpulease itself knows only while they are in the queue.  It executes gpulease
 * again, with the ids of the jobs.  A task that is not submitted yet is cancelled, or waited for,
 * here.
 */
#ifndef GPULEASE_ARRAY_IDS_H
#define GPULEASE_ARRAY_IDS_H

/* Set in the environment of a gpulease whose caller wants to know only of jobs in the queue. */
#define ARRAY_IDS_OFF "GPULEASE_ARRAY_IDS_OFF"

/* Does what @argv asks for, which begins with the word `ids` and the command line. */
int array_ids_main(char **argv);

#endif
