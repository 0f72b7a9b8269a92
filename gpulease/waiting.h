/*
 * The line that a waiting job shows: one when it has to wait, for each attempt anew, then one
 * whenever the kind of reason or the one to blame is another; at most one in 10 s.  Never on
 * stdout.
 */
#ifndef GPULEASE_WAITING_H
#define GPULEASE_WAITING_H

#include "broker.h"

struct waiting_line {
	bool is_shown;
	int64_t shown_ms;
	uint64_t key[5]; /* of what was shown: see waiting_line_show() */
	char limited
		[96]; /* "limited to GPU 0 by CUDA_VISIBLE_DEVICES", "" if it is not */
};

/*
 * Shows the line if it is due.  Returns when to be called again at the latest, INT64_MAX: not
 * before the next turn.
 */
int64_t waiting_line_show(
	struct waiting_line *line, struct broker *broker, int64_t now_ms);

/* Appends when it would start, where that is known and the reason does not say it. */
void waiting_line_estimate(struct broker *broker, struct text *out);

/* What follows the number: "st" of 1st, "th" of 11th. */
const char *ordinal_end(unsigned number);

/* Appends the reason why the last turn did not start the job. */
void waiting_line_reason(
	const struct waiting_line *line, const struct broker *broker, struct text *out);

#endif
