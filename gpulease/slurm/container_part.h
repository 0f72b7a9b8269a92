/*
 * `gpulease-slurm container`: gpulease executes it when a command line has options of pyxis, srun's
 * plugin for containers.  It prints the line that runs the command in a container.
 */
#ifndef GPULEASE_CONTAINER_PART_H
#define GPULEASE_CONTAINER_PART_H

/* @argv is "container", any words, "--", and the command line of gpulease.  Returns EXIT_MISUSE. */
int container_main(char **argv);

#endif
