/*
 * One waiting ticket, as far as the plan looks at it.  Pure.
 */
#ifndef GPULEASE_PLAN_ROW_H
#define GPULEASE_PLAN_ROW_H

#include "choice.h"
#include "queue.h"

/* Why a ticket is held although GPUs may be free, as judged by the reader. */
enum dependency {
	DEPENDENCY_NONE,
	DEPENDENCY_AFTER, /* job ->held_by has not ended */
	DEPENDENCY_START, /* job ->held_by has not started */
	DEPENDENCY_STATUS, /* job ->held_by has ended, but its status is wrong or unknown */
	DEPENDENCY_SINGLETON, /* job ->held_by of the same user and name comes first */
	/*
	 * the ticket may not start before ->held_until_ms (TICKET_HELD: before its release);
	 * ->held_by is the number of a further attempt, 0: it is the first
	 */
	DEPENDENCY_UNTIL,
};

/* A limit that a line of [limits] lifts. */
#define PLAN_NO_LIMIT UINT32_MAX

struct plan_row {
	uint64_t ticket; /* the id of its job */
	uint32_t uid;
	uint32_t gpus;
	struct need need;           /* of each GPU */
	int64_t limit_ms, grace_ms; /* limit 0: none */
	/*
	 * What the user may have at once by line ->limits_line of [limits], in percent of GPUs and
	 * in leases.  0: as the configuration of the reader says; PLAN_NO_LIMIT: any number.
	 */
	unsigned most_percent, most_leases;
	uint32_t limits_line;
	struct queue_place place;
	struct gpuset allow;
	struct preference prefer;
	enum dependency hold;
	uint64_t held_by;
	int64_t held_until_ms;
};

/* Makes the row of @ticket, number @number, with no dependency. */
struct plan_row plan_row_of(uint64_t number, const struct ticket *ticket);

/* Returns what the request needs of each of its GPUs. */
struct need request_need(const struct request *request);

#endif
