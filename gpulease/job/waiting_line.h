/*
 * The line on stderr that says why a job waits: printed when the job begins to wait, for each
 * attempt anew, and whenever the kind of reason or the job or GPU to blame changes; at most once
 * in 10 s.
 */
#ifndef GPULEASE_WAITING_LINE_H
#define GPULEASE_WAITING_LINE_H

#include "broker.h"
#include "job_observer.h"
#include "selection.h"

struct waiting_line {
	bool is_shown;
	int64_t shown_ms;
	uint64_t key[5];            /* identifies the reason that was shown */
	char limited[LIMITED_SIZE]; /* see selection_choose() */
};

/*
 * Prints the line if it is due; @observer (NULL: none) gets each new reason at once.  Returns the
 * time at which to call it again at the latest; INT64_MAX: after the next turn.
 */
int64_t waiting_line_show(struct waiting_line *line, struct broker *broker,
	const struct job_observer *observer, int64_t now_ms);

/* Returns when the job is estimated to start (CLOCK_BOOTTIME); 0: unknown. */
int64_t waiting_line_start_ms(struct broker *broker);

/*
 * Appends when the job is estimated to start, if that is known and the reason does not say it, and
 * when it will usually start.
 */
void waiting_line_estimate(
	struct broker *broker, const struct foretold *foretold, struct text *out);

/* Returns the end of an ordinal number: "st" for 1, "th" for 11. */
const char *ordinal_suffix(unsigned number);

/* Appends the reason why the last turn did not start the job. */
void waiting_line_reason(
	const struct waiting_line *line, const struct broker *broker, struct text *out);

#endif
