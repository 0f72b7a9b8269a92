/*
 * When waiting jobs will usually start: the estimate (estimate.h) with the usual length of each job
 * in the place of its time limit.  For words only; no decision rests on it.
 */
#ifndef GPULEASE_FORETELL_H
#define GPULEASE_FORETELL_H

#include "plan_row.h"
#include "snapshot.h"
#include "usual.h"

/* A start between these two times, CLOCK_BOOTTIME; ->runs 0: nothing can be foretold. */
struct foretold {
	int64_t from_ms, to_ms;
	unsigned
		runs; /* of the job among those before it of which the fewest runs are known */
};

/* Returns the kind of the job with this ticket. */
struct usual_kind foretell_kind(const struct ticket *ticket);

/*
 * Finds in the newest lines of the history how jobs of the @count @kinds run.  Sets @ret[i].
 * Returns 0, also if there is no history, or a negative errno.
 */
MUST_CHECK int foretell_usual(
	int dirfd, const struct usual_kind *kinds, size_t count, struct usual *ret);

/*
 * Sets @ret[i] to when @rows[i] of the @count rows, of @kinds[i], will start.  @view has its facts;
 * it has the same facts again when this returns.  Returns 0 or a negative errno.
 */
MUST_CHECK int foretell_starts(struct snapshot *view, int64_t now_ms,
	const struct plan_row *rows, const struct usual_kind *kinds, size_t count,
	struct foretold *ret);

#endif
