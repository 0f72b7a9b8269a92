/*
 * The reservations, a part of the policy.  Pure.
 *
 * What is left of a lease whose owner has ended (memory that settles, processes) may be gone at
 * any moment or stay for hours.  So a head is given the GPUs soonest to be had twice: as if it
 * stayed, which says when the head starts at the latest, and as if it went now, by which backfill
 * is bound.  Otherwise each end of a job would move a reservation elsewhere for a moment, and a
 * ticket would pass meanwhile.
 */
#ifndef GPULEASE_POLICY_RESERVE_H
#define GPULEASE_POLICY_RESERVE_H

#include "policy.h"

/*
 * Makes @row the next head of @plan.  It takes the GPUs soonest to be free, then the lowest slots,
 * of @candidates: those where it would fit had all leases ended, none of them reserved, at least as
 * many as it needs.  It takes its part of the limits, too.  Returns the head.
 */
const struct plan_head *policy_reserve(
	struct plan *plan, const struct plan_row *row, struct gpuset candidates);

/* Whether @row is certain to have ended before @bound_ms; 0: there is no bound. */
bool policy_ends_before(
	const struct plan *plan, const struct plan_row *row, int64_t bound_ms);

#endif
