/*
 * --dry-run: what would happen to a job now, as a line or as JSON; gpulease-json(5) describes that.
 */
#ifndef GPULEASE_SHOW_FORESEEN_H
#define GPULEASE_SHOW_FORESEEN_H

#include <stdio.h>

#include "foretell.h"
#include "gpu_order.h"

struct foreseen {
	const struct snapshot *view;
	enum verdict_kind verdict;
	struct gpu_order gpus; /* VERDICT_START */
	uint64_t step_of;      /* the id of the job around the step; 0: it is a job */
	unsigned position;     /* in the queue; this and ->why only if it would wait */
	uint32_t limit_line;   /* of [limits], whose limit keeps it; 0: none does */
	int64_t start_ms;      /* CLOCK_BOOTTIME; 0: unknown */
	const char *
		sends_back; /* the ids of the jobs that would be sent back, "3,5"; or NULL */
	const char *why;    /* in words */
	struct foretold foretold; /* if it would wait: when it usually starts */
	struct usual usual;       /* of jobs like it; zeroed: not known */
};

void show_foreseen(const struct foreseen *foreseen, FILE *out);
void show_foreseen_json(const struct foreseen *foreseen, FILE *out);

#endif
