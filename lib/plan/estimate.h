/*
 * Estimates: when waiting jobs would start if every job ran to its limit.  Pure.
 *
 * Time is played forward with the plan itself: a row that starts keeps its GPUs until its limit and
 * grace are over, and each end makes room for the next plan.  Estimates are for people; no decision
 * rests on them.  Jobs that end sooner, leave the queue or come with a higher priority change them.
 */
#ifndef GPULEASE_ESTIMATE_H
#define GPULEASE_ESTIMATE_H

#include "policy.h"

/* The most waiting jobs that are looked at.  Those after them have no estimate. */
enum { ESTIMATE_ROWS = 64 };

/*
 * Whether the caller should hand in @row.  A row that waits for another job, or for its release,
 * has no estimate, and until then keeps no other row waiting.  Pure.
 */
static inline bool estimate_wants(const struct plan_row *row)
{
	return row->hold == DEPENDENCY_NONE ||
	       (row->hold == DEPENDENCY_UNTIL && row->held_until_ms != TICKET_HELD);
}

/*
 * Sets @ret_start_ms[i] to when @rows[i] of the @count rows in their order would start; ->now_ms of
 * @facts: at once; 0: not known.  It is not known if the row waits for another job, for a job
 * without a limit or for anything but a lease, or if it comes after the rows that are looked at.
 *
 * The leases that run now count towards the limits of users for good, because their users are not
 * known.  So the estimate of a job that waits for a limit is too late, or missing.
 *
 * Returns 0 or -ENOMEM; then nothing is set.
 */
MUST_CHECK int estimate_starts(const struct plan_facts *facts,
	const struct plan_row *rows, size_t count, int64_t *ret_start_ms);

#endif
