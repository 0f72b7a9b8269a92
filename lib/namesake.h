/*
 * Who runs under a name: jobs with GPUs by their leases, and those without, which have none, by
 * their tickets.
 *
 * Such a ticket may stand anywhere in the file, before the hint, too.  So all of it is read when
 * somebody asks for the first time, and from then on what is new.  Nothing is written: a crash
 * leaves nothing.
 */
#ifndef GPULEASE_NAMESAKE_H
#define GPULEASE_NAMESAKE_H

#include "outcome.h"

/* A ticket for no GPU of a job that has a name and runs, or may yet. */
struct namesake_ticket {
	uint64_t number;
	uint32_t uid;
	char name[NAME_SIZE_MAX];
};

/* What was read so far.  Zeroed: nothing. */
struct namesakes {
	struct namesake_ticket *all;
	size_t count, room;
	uint64_t read_to; /* the number behind the last ticket */
};

/* One that runs. */
struct namesake {
	uint64_t job;
	struct owner owner;
	struct command runs; /* the command of that owner */
};

/*
 * Whether another job of the same user and name as that of @row runs, as @look finds it.  0:
 * none does; NAMESAKE_RUNS: *@ret is one that does; or a negative errno.
 */
enum { NAMESAKE_RUNS = 1 };
MUST_CHECK int namesake_find(struct namesakes *namesakes, struct outcome_look *look,
	const struct queue_row *row, struct namesake *ret);

void namesakes_release(struct namesakes *namesakes);

#endif
