/*
 * The bell, bell/TOKEN: the FIFO that wakes the owner of a waiting ticket, and the owner of a
 * preemptible job.  A byte that another process writes to it ends the owner's poll.  See fifo.h
 * for how the FIFO is made, and what a crash leaves.
 */
#ifndef GPULEASE_BELL_H
#define GPULEASE_BELL_H

#include "fifo.h"

/* Rings the bell of @token.  Does nothing if no process has it open. */
void bell_ring(const struct statedir *dir, const char *token);

/*
 * Rings every bell, however many there are: a pause, a resume or a new limit concerns all tickets
 * that wait.  Removes the bells of dead owners.
 */
void bell_ring_all(const struct statedir *dir);

/* Empties the caller's own bell @fd. */
void bell_drain(int fd);

/* Removes the bells of dead owners, and temporary names: fifo_sweep_folder(). */
void bell_sweep(const struct statedir *dir);

#endif
