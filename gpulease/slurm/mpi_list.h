/*
 * `srun --mpi=list`: which kinds of PMI there are.
 */
#ifndef GPULEASE_MPI_LIST_H
#define GPULEASE_MPI_LIST_H

/* Prints the list.  Returns an exit status. */
int mpi_list_main(char **argv);

#endif
