/*
 * Finds a running job of a user by its name.  Jobs with GPUs are found by their leases; jobs
 * without GPUs have no lease and are found by their tickets.
 *
 * The ticket of a job without GPUs can be anywhere in the file, also before the queue's hint.  So
 * the first search reads the whole file, and later searches read what is new.  Nothing is written:
 * a crash leaves nothing.
 */
#ifndef GPULEASE_SINGLETON_H
#define GPULEASE_SINGLETON_H

#include "outcome.h"

/* A ticket for 0 GPUs of a job that has a name and runs, or may run later. */
struct singleton_ticket {
	uint64_t number, name_key; /* job_name.h */
	uint32_t uid;
};

/* What was read so far.  Zeroed: nothing. */
struct singletons {
	struct singleton_ticket *all;
	size_t count, room;
	uint64_t read_to; /* the number after the last ticket that was read */
};

/* A running job. */
struct singleton {
	uint64_t job;
	struct owner owner;
	struct command runs; /* the command of that owner */
};

enum singleton_outcome { SINGLETON_RUNS = 1 };

/*
 * Looks for another running job with the user and name of @row, by the lives in @look.  Returns 0
 * if there is none; SINGLETON_RUNS with one of them in *@ret; or a negative errno.
 */
MUST_CHECK int singleton_find(struct singletons *singletons, struct outcome_look *look,
	const struct queue_row *row, struct singleton *ret);

void singletons_release(struct singletons *singletons);

#endif
