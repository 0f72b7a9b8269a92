/*
 * scancel: ends or signals jobs of gpulease.
 */
#ifndef GPULEASE_SCANCEL_H
#define GPULEASE_SCANCEL_H

/* Runs scancel with its words; the first is its name.  Returns the exit status. */
int scancel_main(char **argv);

#endif
