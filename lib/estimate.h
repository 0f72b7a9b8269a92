/*
 * Estimates: when waiting jobs would start if every job ran to its limit.  Pure.
 *
 * Time is played forward with the plan itself: who starts takes its GPUs until its limit
 * and grace are over, and each end makes room for the next plan.  It is what people are
 * told, and nothing else rests on it: jobs that end sooner, leave the queue or come with a
 * higher priority change it.
 */
#ifndef GPULEASE_ESTIMATE_H
#define GPULEASE_ESTIMATE_H

#include "policy.h"

/* So many waiting jobs are looked at; nobody knows of those behind. */
enum { ESTIMATE_ROWS = 64 };

/*
 * Whether @row is worth handing in: who waits for another job starts nobody knows when, and is
 * in nobody's way until then.  Pure.
 */
static inline bool estimate_wants(const struct plan_row *row)
{
	return row->hold == HOLD_NONE || row->hold == HOLD_UNTIL;
}

/*
 * Sets @ret_start_ms[i] to when @rows[i] of the @count in their order would start, now_ms:
 * at once, 0: nobody knows.  That is who is held by another job, who waits for a job without a
 * limit or for anything but a lease, and who comes too late to be looked at.  What live leases
 * count towards a limit is kept for good, since it is not known whose they are: a job that a
 * limit keeps waiting is estimated too late, or not at all.
 *
 * Returns 0 or -ENOMEM; then nothing is set.
 */
MUST_CHECK int estimate_starts(const struct plan_facts *facts,
	const struct plan_row *rows, size_t count, int64_t *ret_start_ms);

#endif
